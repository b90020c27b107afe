package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Sequence;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests models that send requests to other models of their server. Freed memory is overwritten. */
@Timeout(60)
final class ModelClientTest {
    @TempDir
    private Path directory;

    private TestModels models;
    private Path gate;

    @BeforeEach
    void setUp() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.calling(plugins);
        TestPlugins.recording(plugins);
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        gate = directory.resolve("gate");
    }

    @Test
    void passesTensorsOnWithoutCopies() throws Exception {
        calling("caller", "forward", "a,b");
        models.recording("a", "").recording("b", "");
        try (NereidServer server = start()) {
            TensorBuffer memory = server.memory().allocate(Float.BYTES);
            memory.segment().set(ValueLayout.JAVA_FLOAT, 0, 7);
            CompletableFuture<Long> address = new CompletableFuture<>();
            server.infer(request(memory, "caller", RequestOptions.DEFAULT), new Reader(address));

            assertThat(address.get(30, TimeUnit.SECONDS))
                    .isEqualTo(memory.segment().address());
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "caller")).isEqualTo(1);
            assertThat(successes(server, "a")).isEqualTo(1);
            assertThat(successes(server, "b")).isEqualTo(1);
        }
    }

    @Test
    void manyRequestsReadTheirOwnValues() throws Exception {
        calling("caller", "forward", "a,b,a");
        models.recording("a", "dynamic_batching { }\n").recording("b", "dynamic_batching { }\n");
        try (NereidServer server = start()) {
            for (int round = 0; round < 20; round++) {
                List<RecordingObserver> observers = IntStream.range(0, 50)
                        .mapToObj(i -> RecordingObserver.to(server, "caller", i, -i))
                        .toList();
                for (int i = 0; i < observers.size(); i++) {
                    assertThat(observers.get(i).response().values()).containsExactly((float) i, (float) -i);
                }
            }
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void failsWithTheErrorOfTheOtherModel() throws Exception {
        calling("caller", "forward", "a");
        calling("lost", "forward", "absent");
        models.recording("a", parameter("fail_execute", "a_0_0"));
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 1).error().publicMessage())
                    .contains("broken a_0_0");
            assertThat(RecordingObserver.to(server, "lost", 1).error().publicMessage())
                    .contains("Request for unknown model: 'absent' is not found");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void waitsOnTheThreadOfAnInstance() throws Exception {
        calling("caller", "wait", "a");
        calling("alone", "wait_alone", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 3).response().values())
                    .containsExactly(3f);
            assertThat(RecordingObserver.to(server, "alone", 4).response().values())
                    .containsExactly(4f);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void refusesToWaitWhereThreadsMustNotBlock() throws Exception {
        model("short", "direct", "wait", "a");
        calling("later", "wait_later", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "direct", 1).error().publicMessage())
                    .contains("sendAndWait: request to model 'a' on thread", "which must not block");
            assertThat(RecordingObserver.to(server, "later", 1).error().publicMessage())
                    .contains("since it calls observers of other requests (expected: send)");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void refusesCirclesInWhichTheOnlyInstanceWaits() throws Exception {
        calling("self", "wait_alone", "self");
        calling("caused", "wait", "caused");
        calling("c", "wait_alone", "d");
        calling("d", "wait_alone", "c");
        try (NereidServer server = start()) {
            for (String model : List.of("self", "caused")) {
                InferenceException error =
                        RecordingObserver.to(server, model, 1).error();
                assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(error.publicMessage())
                        .startsWith(
                                "request to model '" + model + "' would wait for itself: " + model + " -> " + model);
            }
            assertThat(RecordingObserver.to(server, "c", 1).error().publicMessage())
                    .startsWith("request to model 'c' would wait for itself: c -> d -> c");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** No instance waits: the executions are deferred. */
    @Test
    void refusesCirclesWithoutEnd() throws Exception {
        calling("self", "forward", "self");
        calling("a", "forward", "b");
        calling("b", "forward", "a");
        try (NereidServer server = start()) {
            InferenceException error = RecordingObserver.to(server, "self", 1).error();
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error.publicMessage())
                    .startsWith("request to model 'self' on behalf of more than 64 others: self -> self -> self")
                    .contains("-> ... -> self");
            assertThat(RecordingObserver.to(server, "a", 1).error().publicMessage())
                    .startsWith("request to model 'a' on behalf of more than 64 others: a -> b -> a -> b");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void waitsForAnotherInstanceOfItself() throws Exception {
        calling("alone", "descend_alone", "alone", 4);
        calling("caused", "descend", "caused", 4);
        calling("once", "descend", "once", 1);
        try (NereidServer server = start()) {
            for (String model : List.of("alone", "caused")) {
                assertThat(RecordingObserver.to(server, model, 3).response().values())
                        .containsExactly(0f);
                assertThat(RecordingObserver.to(server, model, 4).error().publicMessage())
                        .contains("request to model '" + model + "' would wait for itself: "
                                + String.join(" -> ", List.of(model, model, model, model, model)));
            }
            assertThat(RecordingObserver.to(server, "once", 0).response().values())
                    .containsExactly(0f);
            assertThat(RecordingObserver.to(server, "once", 1).error().publicMessage())
                    .contains("would wait for itself: once -> once (expected: an instance");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void waitsForAnotherInstanceOfItselfThroughOtherModels() throws Exception {
        calling("a", "descend", "b", 2);
        calling("b", "descend", "a", 1);
        calling("c", "descend", "pipeline", 2);
        ensemble("pipeline", "c");
        calling("few", "descend", "many", 1);
        calling("many", "descend", "few", 2);
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "a", 2).response().values()).containsExactly(0f);
            assertThat(RecordingObserver.to(server, "a", 3).error().publicMessage())
                    .contains("request to model 'b' would wait for itself: a -> b -> a -> b");
            assertThat(RecordingObserver.to(server, "c", 1).response().values()).containsExactly(0f);
            assertThat(RecordingObserver.to(server, "c", 2).error().publicMessage())
                    .contains("request to model 'c' would wait for itself: c -> pipeline -> c -> pipeline -> c");
            assertThat(RecordingObserver.to(server, "few", 2).error().publicMessage())
                    .contains("request to model 'few' would wait for itself: few -> many -> few");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** One instance executes them all, since none of its executions holds it. */
    @Test
    void callsItselfInDeferredExecutions() throws Exception {
        calling("a", "descend_async", "a", 1);
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "a", 20).response().values())
                    .containsExactly(0f);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** Chains that hold each other's instances: some are refused, all end. */
    @Test
    void refusesChainsThatWaitForEachOther() throws Exception {
        calling("self", "descend", "self", 2);
        calling("there", "descend_alone", "back", 1);
        calling("back", "descend", "there", 1);
        try (NereidServer server = start()) {
            int refused = 0;
            for (int round = 0; round < 100; round++) {
                List<RecordingObserver> observers = new ArrayList<>();
                for (int i = 0; i < 4; i++) {
                    observers.add(RecordingObserver.to(server, "self", 1));
                    observers.add(RecordingObserver.to(server, i % 2 == 0 ? "there" : "back", 1));
                }
                for (RecordingObserver observer : observers) {
                    observer.await();
                    if (observer.isFailed()) {
                        refused++;
                        assertThat(observer.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
                        assertThat(observer.error().publicMessage())
                                .contains("would wait for requests that wait for it: ");
                    } else {
                        assertThat(observer.response().values()).containsExactly(0f);
                    }
                }
            }
            assertThat(refused).isPositive();
            assertThat(RecordingObserver.to(server, "self", 1).response().values())
                    .containsExactly(0f);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** The thread of the only instance waits for a request that needs it: through an ensemble, without a cause. */
    @Test
    @Timeout(60)
    void refusesToWaitForItsOwnInstanceThroughEnsembles() throws Exception {
        calling("alone", "wait_alone", "pipeline");
        ensemble("pipeline", "alone");
        calling("first", "wait_alone", "second_pipeline");
        calling("second", "wait_alone", "first");
        ensemble("second_pipeline", "second");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "alone", 1).error().publicMessage())
                    .contains("request to model 'alone' would wait for itself: alone -> pipeline -> alone");
            assertThat(RecordingObserver.to(server, "first", 1).error().publicMessage())
                    .contains("request to model 'first' would wait for itself: first -> second_pipeline -> second ->"
                            + " first");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    private void sequences(String name, String mode, String to) {
        models.model(
                name,
                "backend: \"" + (mode.isEmpty() ? "recording" : "calling") + "\"\nmax_batch_size: 8\n"
                        + TestModels.TENSORS + "sequence_batching { }\ninstance_group { count: 1 kind: KIND_CPU }\n"
                        + parameter("mode", mode) + parameter("to", to));
    }

    @Test
    @Timeout(60)
    void sendsSequences() throws Exception {
        calling("caller", "sequence", "a");
        sequences("a", "", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 3).error().publicMessage())
                    .contains("inference request for sequence 7 to model 'a' must specify the START flag");
            assertThat(RecordingObserver.to(server, "caller", 1).response().values())
                    .containsExactly(1f);
            assertThat(live(server)).isOne();
            assertThat(RecordingObserver.to(server, "caller", 2).response().values())
                    .containsExactly(2f);
            await(() -> live(server) == 0);
            assertThat(successes(server, "a")).isEqualTo(2);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    private static long live(NereidServer server) {
        return server.models().sequences().stream()
                .filter(model -> model.model().name().equals("a"))
                .findFirst()
                .orElseThrow()
                .live();
    }

    /** A slot of the only instance would be the one of the sequence that waits. */
    @Test
    @Timeout(60)
    void refusesToWaitForItsOwnInstanceThroughSequences() throws Exception {
        sequences("self", "wait_in_sequence", "self");
        sequences("first", "wait_in_sequence", "pipeline");
        ensemble("pipeline", "first");
        try (NereidServer server = start()) {
            RequestOptions options = new RequestOptions(
                    0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(7), true, true)));
            for (String model : List.of("self", "first")) {
                TensorBuffer memory = server.memory().allocate(Float.BYTES);
                memory.segment().set(ValueLayout.JAVA_FLOAT, 0, 7);
                RecordingObserver observer = new RecordingObserver();
                server.infer(request(memory, model, options), observer);
                assertThat(observer.error().publicMessage()).contains("would wait for itself: " + model);
            }
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** Whatever thread completes the request of the other model. */
    @Test
    void continuesWithTheClassLoaderOfThePlugin() throws Exception {
        calling("caller", "loader", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 3).response().values())
                    .containsExactly(3f);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    /** The other model, whose thread calls them, goes on. */
    @Test
    void containsWhatContinuationsThrow() throws Exception {
        calling("lacking", "lacking", "a");
        calling("throwing", "stage_throws", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            for (int i = 0; i < 3; i++) {
                assertThat(RecordingObserver.to(server, "lacking", 1).error().publicMessage())
                        .contains("ended");
                assertThat(RecordingObserver.to(server, "throwing", 1).error().publicMessage())
                        .contains("a continuation that throws");
                assertThat(RecordingObserver.to(server, "a", 5).response().values())
                        .containsExactly(5f);
            }
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void refusesCirclesWithoutEndThroughEnsembles() throws Exception {
        calling("caller", "forward", "pipeline");
        ensemble("pipeline", "caller");
        calling("outer", "forward", "other_pipeline");
        ensemble("other_pipeline", "outer");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "pipeline", 1).error().publicMessage())
                    .contains("on behalf of more than 64 others: pipeline -> caller -> pipeline -> caller");
            assertThat(RecordingObserver.to(server, "outer", 1).error().publicMessage())
                    .contains("on behalf of more than 64 others: outer -> other_pipeline -> outer");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void sendsRequestsToEnsembles() throws Exception {
        calling("caller", "forward", "pipeline,a,pipeline");
        ensemble("pipeline", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 3, 4).response().values())
                    .containsExactly(3f, 4f);
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "a")).isEqualTo(3);
            assertThat(successes(server, "pipeline")).isEqualTo(2);
        }
    }

    private void ensemble(String name, String step) {
        models.model(name, "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS + """
                ensemble_scheduling { step [ {
                  model_name: "%s" model_version: -1
                  input_map { key: "INPUT0" value: "INPUT0" }
                  output_map { key: "OUTPUT0" value: "OUTPUT0" }
                } ] }
                """.formatted(step));
    }

    @Test
    void cancelsWithTheCausingRequest() throws Exception {
        calling("caller", "forward", "a");
        models.recording("a", parameter("gate", gate.toString()));
        Files.createFile(gate);
        try (NereidServer server = start()) {
            RecordingObserver first = RecordingObserver.to(server, "a", 1);
            TensorBuffer memory = server.memory().allocate(Float.BYTES);
            RecordingObserver observer = new RecordingObserver();
            Cancellation cancellation = server.infer(request(memory, "caller", RequestOptions.DEFAULT), observer);
            await(() -> waiting(server) == 1);

            cancellation.cancel();

            assertThat(observer.error().code()).isEqualTo(ErrorCode.CANCELLED);
            Files.delete(gate);
            assertThat(first.response().values()).containsExactly(1f);
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "a")).isEqualTo(1);
        }
    }

    @Test
    void cancelsARequestThatIsNotSent() throws Exception {
        calling("caller", "cancel_before", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            InferenceException error = RecordingObserver.to(server, "caller", 1).error();
            assertThat(error.code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(error.publicMessage()).isEqualTo("request was cancelled");
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "a")).isZero();
        }
    }

    @Test
    void cancelsARequestThatWaits() throws Exception {
        calling("caller", "cancel_later", "a");
        models.recording("a", parameter("gate", gate.toString()));
        Files.createFile(gate);
        try (NereidServer server = start()) {
            RecordingObserver first = RecordingObserver.to(server, "a", 1);

            assertThat(RecordingObserver.to(server, "caller", 1).error().code()).isEqualTo(ErrorCode.CANCELLED);

            Files.delete(gate);
            assertThat(first.response().values()).containsExactly(1f);
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "a")).isOne();
        }
    }

    @Test
    void cancelsRequestsWhileTheyAreSent() throws Exception {
        calling("caller", "cancel_meanwhile", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            for (int i = 0; i < 200; i++) {
                RecordingObserver observer = RecordingObserver.to(server, "caller", i);
                observer.await();
                if (observer.isFailed()) {
                    assertThat(observer.error().code()).isEqualTo(ErrorCode.CANCELLED);
                } else {
                    assertThat(observer.response().values()).containsExactly((float) i);
                }
            }
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void doesNotCancelRequestsThatHaveEnded() throws Exception {
        calling("caller", "cancel_after", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 3).response().values())
                    .containsExactly(3f);
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "caller")).isOne();
        }
    }

    @Test
    void endsAtTheDeadlineOfTheCausingRequest() throws Exception {
        calling("caller", "forward", "a");
        models.recording("a", parameter("gate", gate.toString()));
        Files.createFile(gate);
        try (NereidServer server = start()) {
            RecordingObserver first = RecordingObserver.to(server, "a", 1);
            TensorBuffer memory = server.memory().allocate(Float.BYTES);
            RecordingObserver observer = new RecordingObserver();
            long deadline = System.nanoTime() + Duration.ofMillis(200).toNanos();
            RequestOptions options = new RequestOptions(0, 0, OptionalLong.of(deadline), Optional.empty());
            server.infer(request(memory, "caller", options), observer);

            assertThat(observer.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(System.nanoTime()).isGreaterThanOrEqualTo(deadline);
            Files.delete(gate);
            assertThat(first.response().values()).containsExactly(1f);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void keepsTheInputsOfACauseThatDoesNotWait() throws Exception {
        keepsTheInputs("caller");
    }

    @Test
    void keepsTheInputsOfACauseInAnEnsembleThatDoesNotWait() throws Exception {
        ensemble("outer", "caller");
        keepsTheInputs("outer");
    }

    private void keepsTheInputs(String model) throws Exception {
        calling("caller", "leave", "a");
        models.recording("a", parameter("gate", gate.toString()));
        Files.createFile(gate);
        try (NereidServer server = start()) {
            TensorBuffer memory = server.memory().allocate(Float.BYTES);
            memory.segment().set(ValueLayout.JAVA_FLOAT, 0, 7);
            RecordingObserver observer = new RecordingObserver();
            server.infer(request(memory, model, RequestOptions.DEFAULT), observer);
            assertThat(observer.response().values()).containsExactly(7f);

            assertThat(memory.segment().get(ValueLayout.JAVA_FLOAT, 0)).isEqualTo(7); // the other model may read it
            Files.delete(gate);
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void releasesTheResponseOfAnObserverThatThrows() throws Exception {
        calling("caller", "throw", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 1).error().publicMessage())
                    .isEqualTo("ended");
            await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void refusesACauseWhoseExecutionIsFinished() throws Exception {
        System.clearProperty("calling.late");
        calling("caller", "late", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            RecordingObserver.to(server, "caller", 1).response();

            await(() -> System.getProperty("calling.late") != null);
            assertThat(System.getProperty("calling.late")).contains("its execution is finished (expected: not yet)");
            await(() -> server.memory().bytesInUse() == 0);
            assertThat(successes(server, "a")).isZero();
        }
    }

    @Test
    void loadsAndUnloadsOtherModels() throws Exception {
        calling("caller", "load", "a");
        models.recording("a", "");
        ServerOptions options = options().with(o -> o.explicit("caller", "a"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(RecordingObserver.to(server, "caller", 5).response().values())
                    .containsExactly(5f);

            assertThat(Files.readAllLines(directory.resolve("events")).stream().filter("load a/1 on [cpu]"::equals))
                    .hasSize(2);
        }
    }

    @Test
    @Timeout(60)
    void loadsOtherModelsWhileItIsLoaded() throws Exception {
        changing("caller", "loads", "a");
        models.recording("a", "");
        ServerOptions options = options().with(o -> o.explicit("caller"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(RecordingObserver.to(server, "a", 5).response().values()).containsExactly(5f);
        }
    }

    /** The load of a model that needs it, its own, and an unload that it would have to follow. */
    @Test
    @Timeout(60)
    void refusesLoadsThatWouldWaitForItsOwn() throws Exception {
        changing("self", "loads", "self");
        changing("leaving", "unloads", "leaving");
        changing("early", "loads", "pipeline");
        ensemble("pipeline", "early");
        ServerOptions options = options().with(o -> o.explicit());
        try (NereidServer server = NereidServer.start(options)) {
            assertThatThrownBy(() -> TestControl.load(server, "self"))
                    .hasMessageContaining(
                            "load of model 'self' would wait for the load of model 'self', which asks for it"
                                    + " (expected: afterwards)");
            assertThatThrownBy(() -> TestControl.load(server, "leaving"))
                    .hasMessageContaining("unload of model 'leaving' would wait for the load of model 'leaving'");
            assertThatThrownBy(() -> TestControl.load(server, "pipeline"))
                    .hasMessageContaining("load of model 'pipeline' would wait for the load of model 'early'");
        }
    }

    /** Neither the thread that asks nor a detour through another model matters. */
    @Test
    @Timeout(60)
    void refusesLoadsThatWouldWaitForItsOwnByDetours() throws Exception {
        changing("elsewhere", "loads_elsewhere", "elsewhere");
        changing("x", "loads", "y");
        changing("y", "loads", "z");
        changing("z", "loads_elsewhere", "x");
        ServerOptions options = options().with(o -> o.explicit());
        try (NereidServer server = NereidServer.start(options)) {
            assertThatThrownBy(() -> TestControl.load(server, "elsewhere"))
                    .hasMessageContaining("load of model 'elsewhere' would wait for the load of model 'elsewhere'");
            assertThatThrownBy(() -> TestControl.load(server, "x"))
                    .hasMessageContaining("load of model 'x' would wait for the load of model 'z'");
        }
    }

    @Test
    void loadsWithAConfigurationAndFiles() throws Exception {
        calling("caller", "load_configured", "a");
        models.recording("a", "");
        String config = """
                {"backend": "recording", "max_batch_size": 7,
                 "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
                 "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}""";
        String escaped = config.replace("\"", "\\\"").replace("\n", " ");
        models.model(
                "caller",
                Files.readString(directory.resolve("models/caller/config.pbtxt"))
                        + parameter("config", escaped)
                        + parameter("file", "1/weights"));
        ServerOptions options = options().with(o -> o.explicit("caller", "a"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(RecordingObserver.to(server, "caller", 5).response().values())
                    .containsExactly(5f);

            assertThat(server.models().configJson(ModelRef.latest("a"))).contains("\"max_batch_size\":7");
        }
    }

    @Test
    void unloadsWithDependents() throws Exception {
        calling("caller", "unload_dependents", "pipeline");
        ensemble("pipeline", "a");
        models.recording("a", "");
        ServerOptions options = options().with(o -> o.explicit("caller", "pipeline"));
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(server.models().isReady(ModelRef.latest("a"))).isTrue();

            assertThat(RecordingObserver.to(server, "caller", 5).error().publicMessage())
                    .contains("unloaded");

            await(() -> RecordingObserver.to(server, "a", 1).isFailed());
            assertThat(RecordingObserver.to(server, "a", 1).error().publicMessage())
                    .contains("'a'");
        }
    }

    @Test
    void knowsWhichVersionsAreReady() throws Exception {
        calling("caller", "ready", "a");
        calling("lost", "ready", "absent");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(readiness(server, "caller", 1)).contains("ready: true");
            assertThat(readiness(server, "caller", -1)).contains("ready: true");
            assertThat(readiness(server, "caller", 2))
                    .contains("Request for unknown model: 'a' version 2 is not found");
            assertThat(readiness(server, "caller", -2)).contains("version of model 'a': -2 (expected: >= -1)");
            assertThat(readiness(server, "lost", 1)).contains("Request for unknown model: 'absent'");
        }
    }

    private static String readiness(NereidServer server, String model, long version) throws Exception {
        return RecordingObserver.to(server, model, (float) version).error().publicMessage();
    }

    private void changing(String name, String change, String other) {
        models.model(
                name,
                "backend: \"calling\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: 1 kind: KIND_CPU }\n" + parameter("mode", "forward")
                        + parameter("to", "a") + parameter(change, other));
    }

    @Test
    void refusesLoadsWhereClientsMayNotLoad() throws Exception {
        calling("caller", "load", "a");
        models.recording("a", "");
        try (NereidServer server = start()) {
            assertThat(RecordingObserver.to(server, "caller", 5).error().publicMessage())
                    .contains("explicit model load / unload is not allowed");
        }
    }

    @Test
    void requestsInProgressReachOtherModelsWhileTheServerStops() throws Exception {
        calling("caller", "forward", "a,b");
        completesWhileTheServerStops("caller");
    }

    @Test
    void ensemblesCompleteTheirRequestsWhileTheServerStops() throws Exception {
        models.model("pipeline", "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS + """
                ensemble_scheduling { step [
                  { model_name: "a" model_version: -1
                    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "between" } },
                  { model_name: "b" model_version: -1
                    input_map { key: "INPUT0" value: "between" } output_map { key: "OUTPUT0" value: "OUTPUT0" } }
                ] }
                """);
        completesWhileTheServerStops("pipeline");
    }

    private void completesWhileTheServerStops(String model) throws Exception {
        models.recording("a", parameter("gate", gate.toString()) + parameter("record", ""))
                .recording("b", "");
        Files.createFile(gate);
        NereidServer server = start();
        RecordingObserver observer = RecordingObserver.to(server, model, 5);
        await(() -> hasEvent("execute 1 on a_0_0"));
        Thread closing = Thread.ofVirtual().start(server::close);
        await(() -> RecordingObserver.to(server, "b", 1).isFailed()); // clients are refused

        Files.delete(gate);

        assertThat(observer.response().values()).containsExactly(5f);
        closing.join();
    }

    private record Reader(CompletableFuture<Long> address) implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            try (response) {
                address.complete(response.outputs().getFirst().tensor().data().address());
            }
        }

        @Override
        public void onCompleted() {
            address.completeExceptionally(new AssertionError("no response"));
        }

        @Override
        public void onError(InferenceException error) {
            address.completeExceptionally(error);
        }
    }

    private void calling(String name, String mode, String to) {
        model("calling", name, mode, to);
    }

    private void calling(String name, String mode, String to, int instances) {
        model("calling", name, mode, to, instances);
    }

    private void model(String backend, String name, String mode, String to) {
        model(backend, name, mode, to, 1);
    }

    private void model(String backend, String name, String mode, String to, int instances) {
        models.model(
                name,
                "backend: \"" + backend + "\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: " + instances + " kind: KIND_CPU }\n" + parameter("mode", mode)
                        + parameter("to", to));
    }

    private static InferRequest request(TensorBuffer memory, String model, RequestOptions options) {
        InputTensor tensor = InputTensor.of("INPUT0", "FP32", new long[] {1, 1}, memory.segment(), MemoryPlace.HOST);
        return new InferRequest(
                ModelRef.latest(model), "", List.of(tensor), List.of(), Map.of(), options, memory::close);
    }

    private NereidServer start() throws Exception {
        return NereidServer.start(options());
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.poisonFreed = true;
                    o.processors = 2;
                });
    }

    private static long successes(NereidServer server, String model) {
        return statistics(server, model).inferences().success().count();
    }

    /** Returns how many requests wait for model a. */
    private static int waiting(NereidServer server) {
        return statistics(server, "a").metrics().pending();
    }

    private boolean hasEvent(String event) {
        try {
            return Files.readAllLines(directory.resolve("events")).contains(event);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static ModelStatistics statistics(NereidServer server, String model) {
        return server.models().statistics(ModelRef.latest(model)).getFirst();
    }

    private static void await(BooleanSupplier condition) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - end).as("time left").isNegative();
            Thread.onSpinWait();
        }
    }
}
