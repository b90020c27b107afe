package dev.nereid.testkit.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the server in memory: requests, batches, sequences, ensembles, errors, and what its close finds. */
final class LocalServerTest {
    private static final Duration MAX_TIME = Duration.ofMillis(100);
    private static final int TRIES = 10;
    private static final String TENSORS = """
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            """;
    private static final String DECOUPLED = "model_transaction_policy { decoupled: true }\n" + TENSORS;

    /** Waits until four requests are there. */
    private static final String FOURS = "max_batch_size: 8\n" + TENSORS
            + "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 15000000 }\n";

    private static final String QUADRUPLED = """
            platform: "ensemble"
            max_batch_size: 8
            input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
            ensemble_scheduling {
              step { model_name: "first" model_version: -1
                input_map { key: "INPUT" value: "IN" } output_map { key: "OUTPUT" value: "between" } }
              step { model_name: "second" model_version: -1
                input_map { key: "INPUT" value: "between" } output_map { key: "OUTPUT" value: "OUT" } }
            }
            """;

    private static final String SUMS = "max_batch_size: 4\n" + TENSORS + """
            sequence_batching {
              state { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: [ 1 ]
                initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } }
            }
            """;

    /** Returns a request with one item. */
    private static ModelRequest request(LocalServer server, String model, String input, float... values) {
        boolean batches =
                server.server().models().metadata(ModelRef.latest(model)).maxBatchSize() > 0;
        Shape item = Shape.of(values.length);
        return server.client().request(model).input(input, batches ? item.prepend(1) : item, values);
    }

    private static LocalServerBuilder doubled() {
        return LocalServer.with(new Twice()).model("doubled");
    }

    private static void doublesNumbers() {
        try (LocalServer server = doubled().start()) {
            ModelResponse response =
                    server.send(request(server, "doubled", "INPUT", 1, 2.5f)).one();

            assertThat(response.requireOutput("OUTPUT").floats()).containsExactly(2, 5);
            assertThat(response.requireOutput("OUTPUT").shape()).isEqualTo(Shape.of(1, 2));
            assertThat(response.outputs()).containsExactly("OUTPUT");
            assertThat(response.version()).isEqualTo(1);
        }
    }

    @Test
    void respondsByTheCompletionOfTheClassAlone() {
        doublesNumbers();
    }

    @Test
    void takesLittleTimeAfterTheFirst() {
        doublesNumbers();
        Duration best = Duration.ofDays(1);
        for (int i = 0; i < TRIES && best.compareTo(MAX_TIME) >= 0; i++) {
            long start = System.nanoTime();
            doublesNumbers();
            best = Duration.ofNanos(System.nanoTime() - start);
        }
        assertThat(best).isLessThan(MAX_TIME);
    }

    @Test
    void batchesRequestsThatAreSentTogether() {
        BlockingQueue<Integer> sizes = new LinkedBlockingQueue<>();
        TestBackend counting = new TestBackend("counting", place -> batch -> {
            sizes.add(batch.size());
            batch.put("OUTPUT", batch.gather("INPUT"));
        });
        try (LocalServer server = LocalServer.with(counting).model("m", FOURS).start()) {
            List<ReceivedResponses> requests = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                requests.add(server.send(request(server, "m", "INPUT", i)));
            }
            for (int i = 0; i < 4; i++) {
                assertThat(requests.get(i).one().requireOutput("OUTPUT").floats())
                        .containsExactly(i);
            }
        }
        assertThat(sizes).containsExactly(4);
    }

    @Test
    void failsRequestsWithOutputsThatDoNotFit() {
        Map<String, Consumer<Batch>> wrong = Map.of(
                "'OUTPUT' of model 'm': INT32 (expected: FP32): output has another type than configured",
                batch -> batch.allocate("OUTPUT", DataType.INT32, Shape.of(1, 1)),
                "'OUTPUT' of model 'm': [1,1,1] (expected: [-1,1]): output does not fit the configuration",
                batch -> batch.allocate("OUTPUT", DataType.FP32, Shape.of(1, 1, 1)),
                "'OUTPUT' of model 'm': [1,2] (expected: [-1,1]): output does not fit the configuration",
                batch -> batch.allocate("OUTPUT", DataType.FP32, Shape.of(1, 2)),
                "'OUTPUT' of model 'm': nothing (expected: [-1,1]): output missing from a response",
                batch -> {},
                "'OUT' of model 'm': not in the configuration (expected: one of [OUTPUT])",
                batch -> batch.put("OUT", batch.gather("INPUT")));
        wrong.forEach((text, outputs) -> {
            TestBackend backend = new TestBackend("wrong", place -> outputs::accept);
            try (LocalServer server = LocalServer.with(backend)
                    .model("m", "max_batch_size: 8\n" + TENSORS.replaceFirst("(output .*)-1", "$11"))
                    .start()) {
                for (int i = 0; i < 2; i++) {
                    assertThat(server.send(request(server, "m", "INPUT", 1)).error())
                            .hasMessageContaining(text);
                }
            }
        });
    }

    @Test
    void answersRequestsOfABatchApart() throws InterruptedException {
        BlockingQueue<ResponseSender> senders = new LinkedBlockingQueue<>();
        TestBackend backend = new TestBackend("late", place -> batch -> {
            senders.add(batch.requests().getFirst().sender());
            batch.put("OUTPUT", batch.gather("INPUT"));
        });
        try (LocalServer server = LocalServer.with(backend).model("m", FOURS).start()) {
            List<ReceivedResponses> requests = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                requests.add(server.send(request(server, "m", "INPUT", i)));
            }
            for (int i = 1; i < 4; i++) {
                assertThat(requests.get(i).one().requireOutput("OUTPUT").floats())
                        .containsExactly(i);
            }
            ResponseSender late = senders.take();
            InferenceResponse response = late.newResponse();
            write(response.allocate("OUTPUT", DataType.FP32, Shape.of(1, 1)), 9);
            late.complete(response);
            assertThat(requests.getFirst().one().requireOutput("OUTPUT").floats())
                    .containsExactly(9);
        }
    }

    @Test
    void keepsStatesOfSequences() {
        TestBackend summing = new TestBackend("summing", place -> batch -> {
            for (InferenceRequest request : batch.requests()) {
                if (!request.isNullRequest()) {
                    float sum = first(request.requireInput("INPUT")) + first(request.requireInput("SUM_IN"));
                    write(request.state("SUM_OUT").allocate(DataType.FP32, Shape.of(1, 1)), sum);
                    write(request.response().allocate("OUTPUT", DataType.FP32, Shape.of(1, 1)), sum);
                }
            }
        });
        try (LocalServer server = LocalServer.with(summing).model("sum", SUMS).start()) {
            assertThat(sum(server, 1, Sequence.of(7, true, false))).isEqualTo(1);
            assertThat(sum(server, 10, Sequence.of(8, true, false))).isEqualTo(10);
            assertThat(sum(server, 2, Sequence.of(7, false, false))).isEqualTo(3);
            assertThat(sum(server, 3, Sequence.of(7, false, true))).isEqualTo(6);
            assertThat(server.send(request(server, "sum", "INPUT", 3).sequence(Sequence.of(7, false, true)))
                            .error())
                    .hasMessageContaining("must specify the START flag on the first request of the sequence");
        }
    }

    private static float sum(LocalServer server, int number, Sequence sequence) {
        ModelRequest request = request(server, "sum", "INPUT", number).sequence(sequence);
        return server.send(request).one().requireOutput("OUTPUT").floats()[0];
    }

    private static float first(Tensor tensor) {
        return tensor.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
    }

    private static void write(Tensor tensor, float number) {
        tensor.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, number);
    }

    @Test
    void runsEnsemblesOfSeveralModels() {
        try (LocalServer server = LocalServer.with(new Twice())
                .model("first")
                .model("second", "dynamic_batching { }")
                .model("quadrupled", QUADRUPLED)
                .start()) {
            assertThat(server.send(request(server, "quadrupled", "IN", 1, 3))
                            .one()
                            .requireOutput("OUT")
                            .floats())
                    .containsExactly(4, 12);
            BackendException refused =
                    server.send(request(server, "quadrupled", "IN", Float.NaN)).error();
            assertThat(refused)
                    .hasMessageContaining("quadrupled")
                    .hasMessageContaining("INPUT: NaN (expected: finite)");
        }
    }

    @Test
    void failsWithTheErrorsOfTheServer() {
        try (LocalServer server = doubled().start()) {
            ModelClient client = server.client();
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.send(client.request("tripled")).one())
                    .withMessage("Request for unknown model: 'tripled' is not found")
                    .returns(ErrorCode.NOT_FOUND, BackendException::code);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.send(client.request("doubled").input("INPUT", Shape.of(1, 1), 1))
                            .one())
                    .withMessageContaining(
                            "inference input 'INPUT' data-type is 'INT32', but model 'doubled' expects 'FP32'");
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.send(request(server, "doubled", "INPUT", Float.NaN))
                            .one())
                    .withMessage("INPUT: NaN (expected: finite)")
                    .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
        }
    }

    @Test
    void namesTheReasonsOfAFailedStart() {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> doubled().model("wrong", "max_batch_size: 9").start())
                .withMessageContaining("wrong")
                .withMessageContaining("max_batch_size: 9 (expected: at most 8)");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalServer.with(new Twice(), new Twice()).start())
                .withMessageContaining("backend name: 'twice'")
                .withMessageContaining("expected: a name of its own");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalServer.with(new TestBackend("Not a name", place -> batch -> {}))
                        .start())
                .withMessageContaining("name: 'Not a name' (expected: lower-case letters, digits, _ and -)");
    }

    /** Sends the input as often as it says. */
    private static ModelInstance counting() {
        return batch -> {
            for (InferenceRequest request : batch.requests()) {
                ResponseSender sender = request.sender();
                float count = first(request.requireInput("INPUT"));
                for (int i = 0; i < count; i++) {
                    var response = sender.newResponse();
                    write(response.allocate("OUTPUT", DataType.FP32, Shape.of(1)), i);
                    sender.send(response);
                }
                sender.complete();
            }
        };
    }

    @Test
    void returnsAllResponsesOfDecoupledModels() {
        try (LocalServer server = LocalServer.with(new TestBackend("numbers", place -> counting()))
                .model("numbers", DECOUPLED)
                .start()) {
            assertThat(server.send(request(server, "numbers", "INPUT", 3)).all())
                    .extracting(response -> response.requireOutput("OUTPUT").floats()[0])
                    .containsExactly(0f, 1f, 2f);
            assertThat(server.send(request(server, "numbers", "INPUT", 0)).all())
                    .isEmpty();
            assertThatExceptionOfType(AssertionError.class)
                    .isThrownBy(() ->
                            server.send(request(server, "numbers", "INPUT", 2)).one())
                    .withMessageEndingWith("(expected: one)");
        }
    }

    @Test
    void awaitsSingleResponsesAndCancels() throws InterruptedException {
        BlockingQueue<ResponseSender> senders = new LinkedBlockingQueue<>();
        TestBackend open = new TestBackend(
                "open",
                place -> batch -> senders.add(batch.requests().getFirst().sender()));
        try (LocalServer server =
                LocalServer.with(open).model("open", DECOUPLED).start()) {
            ModelRequest request = request(server, "open", "INPUT", 1);
            ReceivedResponses pending = server.send(request);
            ResponseSender sender = senders.poll(10, TimeUnit.SECONDS);
            sender.sendError(new BackendException(ErrorCode.INTERNAL, "one failed"));
            sender.send(sender.newResponse());

            assertThat(pending.await(1)).hasSize(1);
            assertThat(pending.failed())
                    .singleElement()
                    .satisfies(failure -> assertThat(failure).hasMessage("one failed"));
            assertThat(pending.hasEnded()).isFalse();
            request.cancel();
            assertThat(sender.isCancelled()).isTrue();
            sender.complete();
            assertThat(pending.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThatExceptionOfType(AssertionError.class)
                    .isThrownBy(() -> pending.await(2))
                    .withMessageContaining("responses: 1 at the end of the request (expected: 2)");
        }
    }

    @Test
    void closesTheResponsesThatWereReceivedAndThoseThatFollow() throws InterruptedException {
        BlockingQueue<ResponseSender> senders = new LinkedBlockingQueue<>();
        TestBackend open = new TestBackend(
                "open",
                place -> batch -> senders.add(batch.requests().getFirst().sender()));
        try (LocalServer server =
                LocalServer.with(open).model("open", DECOUPLED).start()) {
            ReceivedResponses received = server.send(request(server, "open", "INPUT", 1));
            ResponseSender sender = senders.take();
            for (int i = 0; i < 2; i++) {
                InferenceResponse response = sender.newResponse();
                write(response.allocate("OUTPUT", DataType.FP32, Shape.of(1)), i);
                sender.send(response);
                received.await(i + 1);
                received.close();
            }
            sender.complete();

            assertThat(received.all()).hasSize(2);
            assertThat(server.server().memory().bytesInUse()).isZero();
        }
    }

    @Test
    void failsForRequestsWithoutAnEnd() {
        TestBackend open = new TestBackend(
                "open", place -> batch -> batch.requests().getFirst().sender());
        LocalServer server = LocalServer.with(open)
                .model("open", DECOUPLED)
                .timeout(Duration.ofMillis(50))
                .start();
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(
                        () -> server.send(request(server, "open", "INPUT", 1)).one())
                .withMessage("request: no end after PT0.05S (responses: 0)");
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(server::close)
                .withMessageContaining("Exit timeout expired");
    }

    @Test
    void findsScratchMemoryThatIsLeft() {
        TestBackend leaking = new TestBackend("leaking", place -> {
            place.allocate(MemoryPlace.HOST, 64);
            return batch -> batch.put("OUTPUT", batch.gather("INPUT"));
        });
        LocalServer server = LocalServer.with(leaking).model("m", TENSORS).start();
        assertThat(server.send(request(server, "m", "INPUT", 1))
                        .one()
                        .requireOutput("OUTPUT")
                        .floats())
                .containsExactly(1);
        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessage(
                        "model 'm', version 1, plugin 'leaking': 1 allocation of 64 bytes of instance 'm_0' was not"
                                + " closed, and the server released it (expected: AllocatedMemory.close, at the latest in"
                                + " ModelInstance.close)");
    }

    @Test
    void findsListenersThatAreKept() {
        TestBackend listening =
                new TestBackend("listening", place -> batch -> batch.put("OUTPUT", batch.gather("INPUT")), model -> {
                    model.onLogLevel(level -> {}).close();
                    model.onLogLevel(level -> {});
                    model.onLogLevel(level -> {});
                });
        LocalServer server = LocalServer.with(listening).model("m", TENSORS).start();

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessage(
                        "model 'm', version 1, plugin 'listening': 2 actions of onLogLevel were not closed, and the"
                                + " server released them (expected: CancelHook.close, at the latest in Model.close)");
    }

    @Test
    void passesElementsOfAllKinds(@TempDir Path directory) throws IOException {
        TestBackend echo = new TestBackend("echo", place -> batch -> {
            InferenceRequest request = batch.requests().getFirst();
            for (String input : batch.inputs()) {
                request.response().put(input.replaceFirst("^IN", "OUT"), request.requireInput(input));
            }
            InferenceResponse response = request.response();
            request.parameters().text("text").ifPresent(value -> response.parameter("text", value));
            request.parameters().integer("p", 1, 512).ifPresent(value -> response.parameter("p", value));
            request.parameters().number("half", 0, 1).ifPresent(value -> response.parameter("half", value));
            request.parameters().flag("flag").ifPresent(value -> response.parameter("flag", value));
        });
        StringBuilder config = new StringBuilder("name: \"echo\" backend: \"echo\"\n");
        for (String type : List.of("FP32", "FP64", "INT32", "INT64", "STRING", "BOOL")) {
            String dims = type.equals("INT32") ? "2, -1" : "-1";
            String rest = "_" + type + "\" data_type: TYPE_" + type + " dims: [ " + dims + " ]";
            config.append("input { name: \"IN").append(rest).append(" optional: true }\n");
            config.append("output { name: \"OUT").append(rest).append(" }\n");
        }
        Path model =
                Files.createDirectories(directory.resolve("echo").resolve("1")).getParent();
        Files.writeString(model.resolve("config.pbtxt"), config);
        Tensor flag = Tensor.of(DataType.BOOL, Shape.of(1), Arena.ofAuto().allocate(1));
        try (LocalServer server =
                LocalServer.with(echo).model(model).withWrongOutputs().start()) {
            ModelResponse response = server.send(server.client()
                            .request("echo")
                            .id("r")
                            .parameter("p", 3)
                            .parameter("text", "t")
                            .parameter("half", 0.5)
                            .parameter("flag", true)
                            .input("IN_INT32", Shape.of(2, 2), 1, 2, 3, 4)
                            .input("IN_INT64", Shape.of(2), 5L, 6L)
                            .input("IN_STRING", Shape.of(2), "a", "ä")
                            .input("IN_BOOL", flag)
                            .input("IN_FP64", Shape.of(1), 0.5))
                    .one();

            assertThat(response.requireOutput("OUT_INT32").ints()).containsExactly(1, 2, 3, 4);
            assertThat(response.requireOutput("OUT_INT32").shape()).isEqualTo(Shape.of(2, 2));
            assertThat(response.requireOutput("OUT_INT64").longs()).containsExactly(5, 6);
            assertThat(response.requireOutput("OUT_STRING").strings()).containsExactly("a", "ä");
            assertThat(response.requireOutput("OUT_FP64").doubles()).containsExactly(0.5);
            assertThat(response.requireOutput("OUT_BOOL").byteSize()).isEqualTo(1);
            assertThat(response.parameters().asMap())
                    .isEqualTo(Map.of("p", 3L, "text", "t", "half", 0.5, "flag", true));
            assertThat(server.send(server.client().request("echo").parameter("p", 0))
                            .error())
                    .hasMessageContaining("parameter 'p': 0 (expected: 1 to 512)")
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(response.id()).isEqualTo("r");
        }
    }

    @Test
    void passesParametersToOtherModelsAndBack() {
        TestBackend called = new TestBackend("called", place -> batch -> {
            InferenceRequest request = batch.requests().getFirst();
            assertThat(request.parameters().asMap())
                    .isEqualTo(Map.of("text", "t", "integer", -1L, "number", 0.5, "flag", false));
            request.response()
                    .parameter(
                            "integer",
                            request.parameters().longInteger("integer", -1, 0).orElseThrow());
            request.response().parameter("flag", true);
            batch.put("OUTPUT", batch.gather("INPUT"));
        });
        AtomicReference<ModelContext> caller = new AtomicReference<>();
        TestBackend.Instances calls = place -> batch -> {
            ModelRequest request = caller.get()
                    .models()
                    .request("called")
                    .input("INPUT", batch.gather("INPUT"))
                    .parameter("text", "t")
                    .parameter("integer", -1)
                    .parameter("number", 0.5)
                    .parameter("flag", false);
            try (ModelResponse response = request.sendAndWait()) {
                assertThat(response.parameters().asMap()).isEqualTo(Map.of("integer", -1L, "flag", true));
                response.parameters().choice("integer", "a", "b");
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        try (LocalServer server = LocalServer.with(called, new TestBackend("callers", calls, caller::set))
                .model("called", "backend: \"called\"\n" + TENSORS)
                .model("caller", "backend: \"callers\"\n" + TENSORS)
                .start()) {
            assertThat(server.send(request(server, "caller", "INPUT", 1)).error())
                    .hasMessageContaining("parameter 'integer': -1 (expected: one of [a, b])");
        }
    }

    @Test
    void failsIfAResponseIsNotClosed() throws InterruptedException {
        AtomicReference<ModelContext> caller = new AtomicReference<>();
        TestBackend.Instances forgets = place -> batch -> {
            Tensor input = batch.requests().getFirst().requireInput("INPUT");
            ModelRequest request = caller.get().models().request("doubled").input("INPUT", input);
            try {
                Tensor doubled = request.sendAndWait().requireOutput("OUTPUT");
                batch.put("OUTPUT", Tensor.ofFloats(doubled.shape(), doubled.floats()));
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        LocalServer server = LocalServer.with(new Twice(), new TestBackend("forgetful", forgets, caller::set))
                .model("doubled", "backend: \"twice\" max_batch_size: 8")
                .model("caller", "backend: \"forgetful\" max_batch_size: 8\n" + TENSORS)
                .start();
        assertThat(server.send(request(server, "caller", "INPUT", 2.5f))
                        .one()
                        .requireOutput("OUTPUT")
                        .floats())
                .containsExactly(5);

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessageMatching(
                        "model 'caller', version 1, plugin 'forgetful': (a|1) response of model 'doubled' was not"
                                + " closed, and the server released it \\(expected: ModelResponse.close, such as by"
                                + " try-with-resources\\)");
    }

    @Test
    void failsIfASenderOrALeaseIsNotEnded() {
        LocalServer server = LocalServer.with(
                        new TestBackend(
                                "senders", place -> batch -> batch.requests().forEach(InferenceRequest::sender)),
                        new TestBackend("leases", place -> batch -> {
                            batch.requests().forEach(InferenceRequest::leaseInputs);
                            batch.put("OUTPUT", Tensor.ofFloats(Shape.of(1, 1), 3));
                        }))
                .model("stream", "backend: \"senders\" max_batch_size: 8\n" + DECOUPLED)
                .model("leased", "backend: \"leases\" max_batch_size: 8\n" + TENSORS)
                .start();
        server.send(request(server, "leased", "INPUT", 2.5f)).one();
        server.client().request("stream").input("INPUT", Shape.of(1, 1), 2.5f).send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                response.close();
            }

            @Override
            public void onCompleted() {}

            @Override
            public void onError(BackendException error) {}
        });

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessageContaining(
                        "model 'stream', version 1, plugin 'senders': a sender of a request was not ended,"
                                + " and the server ended it (expected: ResponseSender.complete or fail)")
                .withMessageContaining(
                        "model 'leased', version 1, plugin 'leases': a lease on the inputs of a request was"
                                + " not ended, and the server ended it (expected: to run what InferenceRequest.leaseInputs"
                                + " returned)");
    }

    @Tag("slow")
    @Test
    void failsSoonIfAPluginKeepsASenderOrALease() throws InterruptedException {
        List<Object> kept = new CopyOnWriteArrayList<>();
        CountDownLatch executed = new CountDownLatch(1);
        LocalServer server = LocalServer.with(
                        new TestBackend("senders", place -> batch -> {
                            batch.requests().forEach(one -> kept.add(one.sender()));
                            executed.countDown();
                        }),
                        new TestBackend("leases", place -> batch -> {
                            batch.requests().forEach(one -> kept.add(one.leaseInputs()));
                            batch.put("OUTPUT", Tensor.ofFloats(Shape.of(1, 1), 3));
                        }))
                .model("stream", "backend: \"senders\" max_batch_size: 8\n" + DECOUPLED)
                .model("leased", "backend: \"leases\" max_batch_size: 8\n" + TENSORS)
                .timeout(Duration.ofMinutes(10))
                .start();
        server.send(request(server, "leased", "INPUT", 2.5f)).one();
        ModelRequest cancelled = request(server, "stream", "INPUT", 2.5f);
        server.send(cancelled);
        assertThat(executed.await(1, TimeUnit.MINUTES)).isTrue();
        cancelled.cancel();

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessageContaining(
                        "model 'stream', version 1, waits for senders that are not ended: 1 of plugin 'senders'")
                .withMessageContaining(
                        "model 'leased', version 1, waits for leases on inputs that are not ended: 1 of plugin 'leases'");

        assertThat(kept).hasSize(2);
        ((ResponseSender) kept.stream()
                        .filter(ResponseSender.class::isInstance)
                        .findFirst()
                        .orElseThrow())
                .complete();
        ((Runnable) kept.stream().filter(Runnable.class::isInstance).findFirst().orElseThrow()).run();
    }

    @Test
    void givesTheClientOfTheServer() throws InterruptedException {
        try (LocalServer server = doubled().start();
                ModelResponse response =
                        request(server, "doubled", "INPUT", 1, 2.5f).id("mine").sendAndWait()) {
            assertThat(response.requireOutput("OUTPUT").floats()).containsExactly(2, 5);
            assertThat(response.id()).isEqualTo("mine");
        }
    }

    @Test
    void failsIfATestDoesNotCloseAResponse() throws InterruptedException {
        LocalServer server = doubled().start();
        assertThat(server.client()
                        .request("doubled")
                        .input("INPUT", Shape.of(1, 1), 2.5f)
                        .sendAndWait()
                        .outputs())
                .containsExactly("OUTPUT");

        assertThatExceptionOfType(AssertionError.class)
                .isThrownBy(server::close)
                .withMessage("the program: a response of model 'doubled' was not closed, and the server released it"
                        + " (expected: ModelResponse.close, such as by try-with-resources)");
    }

    @Test
    void namesTheTensorOfAWrongType() {
        TestBackend longs = new TestBackend("longs", place -> batch -> {
            batch.gather("INPUT").longs();
        });
        AtomicReference<ModelContext> caller = new AtomicReference<>();
        TestBackend.Instances calls = place -> batch -> {
            Tensor input = batch.requests().getFirst().requireInput("INPUT");
            assertThat(input.doubles()).containsExactly(1);
            ModelRequest request = caller.get().models().request("doubled").input("INPUT", input);
            try (ModelResponse response = request.sendAndWait()) {
                response.requireOutput("OUTPUT").longs();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
        TestBackend callers = new TestBackend("callers", calls, caller::set);
        try (LocalServer server = LocalServer.with(new Twice(), longs, callers)
                .model("doubled", "backend: \"twice\" max_batch_size: 8")
                .model("long", "backend: \"longs\"\n" + FOURS)
                .model("one", "backend: \"longs\"\n" + TENSORS)
                .model("caller", "backend: \"callers\" max_batch_size: 8\n" + TENSORS)
                .start()) {
            List<ReceivedResponses> together = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                together.add(server.send(request(server, "long", "INPUT", i)));
            }
            for (ReceivedResponses request : together) {
                assertWrongType(request, "tensor 'INPUT': FP32 [4,1]");
            }
            assertWrongType(server.send(request(server, "one", "INPUT", 1)), "tensor 'INPUT': FP32 [1]");
            assertWrongType(server.send(request(server, "caller", "INPUT", 1)), "tensor 'OUTPUT': FP32 [1,1]");
        }
    }

    private static void assertWrongType(ReceivedResponses request, String tensor) {
        BackendException error = request.error();
        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.getMessage())
                .contains(tensor + " (expected: an integer type or BOOL; FP32 is read by floats())");
    }

    @Test
    void requestsOutputsAndVersionsByName() {
        try (LocalServer server = doubled().start()) {
            assertThat(server.send(request(server, "doubled", "INPUT", 1).output("OUTPUT"))
                            .one()
                            .outputs())
                    .containsExactly("OUTPUT");
            assertThat(server.send(request(server, "doubled", "INPUT", 1).output("OTHER"))
                            .error())
                    .hasMessageContaining("OTHER");
            assertThat(server.send(request(server, "doubled", "INPUT", 1).version(2))
                            .error()
                            .code())
                    .isEqualTo(ErrorCode.NOT_FOUND);
        }
    }

    @Test
    void copiesFilesIntoModelsAndDeletesThemAtTheClose(@TempDir Path directory) throws IOException {
        Path weights = Files.writeString(directory.resolve("weights"), "3");
        List<Path> seen = new ArrayList<>();
        TestBackend reading = new TestBackend("reading", place -> batch -> {}, model -> {
            seen.add(model.versionDirectory());
            assertThat(model.versionDirectory().resolve("weights")).hasContent("3");
        });
        try (LocalServer server = LocalServer.with(reading)
                .model("m", TENSORS)
                .file("m", "1/weights", weights)
                .options(options -> options.backendSetting("reading", "key", "value"))
                .start()) {
            assertThat(server.server().isReady()).isTrue();
        }
        assertThat(seen).singleElement().satisfies(path -> assertThat(path).doesNotExist());
    }

    @Test
    void endsItsThreads() throws InterruptedException {
        doublesNumbers(); // threads that the JVM starts and keeps
        Set<Thread> before = Set.copyOf(Thread.getAllStackTraces().keySet());
        doublesNumbers();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (!before.contains(thread) && !thread.getName().startsWith("ForkJoinPool")) {
                assertThat(thread.join(Duration.ofSeconds(20)))
                        .as(thread.getName())
                        .isTrue();
            }
        }
    }
}
