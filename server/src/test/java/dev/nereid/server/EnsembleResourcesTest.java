package dev.nereid.server;

import static dev.nereid.server.EnsembleFixture.step;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.plugin.PluginJar;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.server.EnsembleFixture.Outcome;
import dev.nereid.server.EnsembleFixture.Query;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests resources that ensembles share with other requests: limits, cached responses, generations and memory. */
@Timeout(120)
final class EnsembleResourcesTest {
    private static final String CACHED = "response_cache { enable: true }\n";

    @TempDir
    private Path directory;

    private EnsembleFixture fixture;

    @BeforeEach
    void setUp() throws Exception {
        fixture = new EnsembleFixture(directory.resolve("first"));
    }

    private ServerOptions explicit(String... models) {
        return fixture.options().with(o -> o.explicit(models));
    }

    private static long executions(NereidServer server, String model) {
        return server.models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .executions()
                .executionCount();
    }

    private static long pending(NereidServer server, String model) {
        return server.models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .metrics()
                .pending();
    }

    private static long copies(NereidServer server, String model) {
        return server.models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .metrics()
                .inputCopies();
    }

    /** The limit of the server counts the request of the client, and not those that it consists of. */
    @Test
    void doesNotRefuseAStepWhenTheServerIsFull() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        fixture.step("one", parameter("add", "1"))
                .step("slow", parameter("add", "10") + parameter("gate", gate.toString()))
                .ensemble("inner", step("one", "IN=IN", "OUT=mid"), step("slow", "IN=mid", "OUT=OUT"))
                .ensemble("outer", step("inner", "IN=IN", "OUT=mid"), step("one", "IN=mid", "OUT=OUT"));
        try (NereidServer server =
                NereidServer.start(fixture.options().with(o -> o.limits = Optional.of(new AdmissionLimits(1, 4))))) {
            Outcome first = Query.of(server, "outer", 1).send();
            DemandFixture.await(() -> server.models()
                            .statistics(ModelRef.latest("one"))
                            .getFirst()
                            .executions()
                            .executionCount()
                    == 1);
            assertThat(Query.of(server, "one", 1).send().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);

            Files.delete(gate);
            assertThat(first.output("OUT")).containsExactly(13f);
            DemandFixture.await(() -> isAdmitted(Query.of(server, "outer", 2).send(), 14f));
        }
    }

    private static boolean isAdmitted(Outcome outcome, float output) {
        try {
            outcome.responses();
        } catch (AssertionError e) { // the request before is about to leave
            return false;
        }
        assertThat(outcome.output("OUT")).containsExactly(output);
        return true;
    }

    @Test
    void answersFromTheCacheUntilAStepIsLoadedAgain() throws Exception {
        fixture.step("one", parameter("add", "1"))
                .step("ten", parameter("add", "10"))
                .ensembleOf(
                        "both",
                        CACHED + "max_batch_size: 8\n" + EnsembleFixture.tensors("input", "-1", "IN")
                                + EnsembleFixture.tensors("output", "-1", "OUT"),
                        step("one", "IN=IN", "OUT=mid"),
                        step("ten", "IN=mid", "OUT=OUT"));
        ServerOptions options = explicit("both").with(o -> o.cache = Optional.of(CacheOptions.local(1 << 20)));
        try (NereidServer server = NereidServer.start(options)) {
            awaitCached(server, 12);
            long before = executions(server, "one");
            assertThat(Query.of(server, "both", 1).send().output("OUT")).containsExactly(12f);
            assertThat(executions(server, "one")).isEqualTo(before);

            fixture.step("ten", parameter("add", "20"));
            TestControl.load(server, "ten");
            assertThat(Query.of(server, "both", 1).send().output("OUT")).containsExactly(22f);
            awaitCached(server, 22);

            fixture.step("ten", parameter("add", "10"));
            TestControl.load(server, "ten");
            long again = executions(server, "one");
            assertThat(Query.of(server, "both", 1).send().output("OUT")).containsExactly(12f);
            assertThat(executions(server, "one"))
                    .as("the same content as at first")
                    .isEqualTo(again);

            TestControl.force(server, "ten");
            assertThat(Query.of(server, "both", 1).send().output("OUT")).containsExactly(12f);
            assertThat(executions(server, "one")).as("a forced load").isEqualTo(again + 1);
        }
    }

    /** Sends a request until its response comes from the cache. */
    private static void awaitCached(NereidServer server, float expected) throws Exception {
        DemandFixture.await(() -> {
            long before = executions(server, "one");
            assertThat(Query.of(server, "both", 1).send().output("OUT")).containsExactly(expected);
            return executions(server, "one") == before;
        });
    }

    private static final String CACHE = """
            package keys;

            import dev.nereid.spi.cache.*;
            import java.lang.foreign.MemorySegment;
            import java.nio.file.*;

            public final class Keys implements CacheProvider {
                public String name() { return "keys"; }

                public ResponseCache create(CacheContext context) {
                    Path file = Path.of(context.settings().get("file"));
                    return new ResponseCache() {
                        public void lookup(CacheKey key, LookupObserver observer) {
                            try {
                                Files.writeString(file, key.text() + "\\n",
                                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                            } catch (java.io.IOException e) {
                                throw new IllegalStateException(e);
                            }
                            observer.missing();
                        }
                        public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
                            observer.refused();
                        }
                        public void close() {}
                    };
                }
            }
            """;

    /** Servers that share a cache search for the responses of equal content under the same key. */
    @Test
    void sharesResponsesWithOtherServers() throws Exception {
        Path caches = Files.createDirectories(directory.resolve("caches"));
        PluginJar.of(CACHE)
                .entry("META-INF/services/dev.nereid.spi.cache.CacheProvider", "keys.Keys")
                .write(caches.resolve("keys.jar"));
        String first = key(fixture, caches, "one", "ten", "both");
        EnsembleFixture second = new EnsembleFixture(directory.resolve("second"));
        assertThat(key(second, caches, "both")).isEqualTo(first);
        EnsembleFixture third = new EnsembleFixture(directory.resolve("third"));
        third.step("ten", parameter("add", "11"));
        assertThat(key(third, caches, "both")).isNotEqualTo(first);
    }

    private String key(EnsembleFixture server, Path caches, String... loaded) throws Exception {
        if (!Files.exists(server.models().root().resolve("ten"))) {
            server.step("ten", parameter("add", "10"));
        }
        server.step("one", parameter("add", "1"))
                .ensemble("inner", step("one", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"))
                .ensembleOf(
                        "both",
                        CACHED + "max_batch_size: 8\n" + EnsembleFixture.tensors("input", "-1", "IN")
                                + EnsembleFixture.tensors("output", "-1", "OUT"),
                        step("inner", "IN=IN", "OUT=mid"),
                        step("ten", "IN=mid", "OUT=OUT"));
        Path file = Files.createTempFile(directory, "keys", "");
        CacheOptions cache = new CacheOptions("keys", Map.of("file", file.toString()), List.of(caches));
        ServerOptions options = server.options().with(o -> {
            o.explicit();
            o.cache = Optional.of(cache);
        });
        try (NereidServer started = NereidServer.start(options)) {
            for (String model : loaded) {
                TestControl.load(started, model);
            }
            Query.of(started, "both", 1).send().responses();
        }
        List<String> keys = Files.readAllLines(file);
        assertThat(keys).hasSize(1);
        return keys.getFirst();
    }

    /** A step that the thread of the step before executes directly is one of the models of the begin, too. */
    @Test
    void executesDirectStepsOnTheGenerationThatItHolds() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        fixture.step("slow", parameter("gate", gate.toString()))
                .step("direct", parameter("add", "10") + parameter("execution", "SHORT"))
                .ensemble("both", step("slow", "IN=IN", "OUT=mid"), step("direct", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(explicit("both"))) {
            Outcome before = Query.of(server, "both", 1).send();
            fixture.step("direct", parameter("add", "20") + parameter("execution", "SHORT"));
            TestControl.load(server, "direct");
            Outcome after = Query.of(server, "both", 1).send();
            Files.delete(gate);

            assertThat(before.output("OUT")).containsExactly(11f);
            assertThat(after.output("OUT")).containsExactly(21f);
        }
    }

    /** An execution of a step, as it recorded itself. */
    private record Execution(String model, int requests, long in, long out) {
        static List<Execution> read(Path file) throws Exception {
            return Files.readAllLines(file).stream()
                    .map(line -> line.split(" "))
                    .map(parts -> new Execution(
                            parts[0], Integer.parseInt(parts[1]), Long.parseLong(parts[2]), Long.parseLong(parts[3])))
                    .toList();
        }
    }

    /** Three steps; the first executes three requests at once, or one when the time of its queue is over. */
    private Path recording(String first) throws Exception {
        return recording(first, "");
    }

    /** Adds three steps that record their executions; the first has parameters of its own. */
    private Path recording(String first, String parameters) throws Exception {
        Path record = Files.createFile(directory.resolve("record"));
        fixture.step("a", "dynamic_batching { " + first + " }\n" + parameter("record", record.toString()) + parameters)
                .step("b", "dynamic_batching { }\n" + parameter("record", record.toString()) + parameter("add", "10"))
                .step("c", "dynamic_batching { }\n" + parameter("record", record.toString()) + parameter("add", "100"))
                .ensemble(
                        "chain",
                        step("a", "IN=IN", "OUT=first"),
                        step("b", "IN=first", "OUT=second"),
                        step("c", "IN=second", "OUT=OUT"));
        return record;
    }

    @Test
    void copiesNothingBetweenStepsOfOneRequest() throws Exception {
        Path record = recording("");
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "chain", 1, 2).send().output("OUT")).containsExactly(111f, 112f);

            List<Execution> executions = Execution.read(record);
            assertThat(executions).extracting(Execution::model).containsExactly("a", "b", "c");
            assertThat(executions.get(1).in()).isEqualTo(executions.get(0).out());
            assertThat(executions.get(2).in()).isEqualTo(executions.get(1).out());
            assertThat(List.of(copies(server, "a"), copies(server, "b"), copies(server, "c")))
                    .containsOnly(0L);
        }
    }

    /** The requests of clients are gathered once; the next batches hold the same requests in the same order. */
    @Test
    void copiesNothingBetweenStepsOfTheSameRequests() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        Path record = recording(
                "preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000",
                parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            List<Outcome> outcomes = List.of(
                    Query.of(server, "chain", 1, 2).send(),
                    Query.of(server, "chain", 3, 4).send(),
                    Query.of(server, "chain", 5, 6).send());
            Files.delete(gate); // else the thread that sends might handle the last response, apart from the others
            for (int i = 0; i < 3; i++) {
                assertThat(outcomes.get(i).output("OUT")).containsExactly(111f + 2 * i, 112f + 2 * i);
            }

            List<Execution> executions = Execution.read(record);
            assertThat(executions).extracting(Execution::requests).containsExactly(3, 3, 3);
            assertThat(executions.get(1).in()).isEqualTo(executions.get(0).out());
            assertThat(executions.get(2).in()).isEqualTo(executions.get(1).out());
            assertThat(copies(server, "a")).isOne();
            assertThat(List.of(copies(server, "b"), copies(server, "c"))).containsOnly(0L);
        }
    }

    /** A batch with requests of others is gathered once. */
    @Test
    void copiesOnceForABatchWithOtherRequests() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        Path first = Files.createTempFile(directory, "first", "");
        Path record = recording(
                "preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 60000000",
                parameter("gate", first.toString()));
        fixture.step(
                "b",
                "dynamic_batching { }\n" + parameter("record", record.toString()) + parameter("add", "10")
                        + parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            Outcome blocking = Query.of(server, "b", 0, 0).send();
            DemandFixture.await(() -> pending(server, "b") == 0); // taken by the instance
            List<Outcome> outcomes = List.of(
                    Query.of(server, "chain", 1, 2).send(),
                    Query.of(server, "chain", 3, 4).send(),
                    Query.of(server, "chain", 5, 6).send());
            Files.delete(first);
            DemandFixture.await(() -> pending(server, "b") == 3);
            Outcome direct = Query.of(server, "b", 7, 8).send();
            Files.delete(gate);

            assertThat(blocking.output("OUT")).containsExactly(10f, 10f);
            assertThat(direct.output("OUT")).containsExactly(17f, 18f);
            for (int i = 0; i < 3; i++) {
                assertThat(outcomes.get(i).output("OUT")).containsExactly(111f + 2 * i, 112f + 2 * i);
            }
            assertThat(Execution.read(record).stream()
                            .filter(one -> one.model().equals("b"))
                            .map(Execution::requests))
                    .containsExactly(1, 4);
            assertThat(copies(server, "b")).isOne();
        }
    }

    /** Statistics name the version that serves, which the reference always calls 1. */
    @Test
    void countsForItsVersion() throws Exception {
        fixture.step("one", parameter("add", "1"));
        fixture.models()
                .model(
                        "third",
                        "platform: \"ensemble\"\nmax_batch_size: 8\n" + EnsembleFixture.tensors("input", "-1", "IN")
                                + EnsembleFixture.tensors("output", "-1", "OUT")
                                + EnsembleFixture.scheduling(step("one", "IN=IN", "OUT=OUT")),
                        3);
        try (NereidServer server = NereidServer.start(fixture.options())) {
            Query.of(server, "third", 1).send().responses();

            assertThat(server.models().statistics(ModelRef.latest("third")))
                    .singleElement()
                    .satisfies(statistics -> {
                        assertThat(statistics.model().version()).isEqualTo(3);
                        assertThat(statistics.inferences().success().count()).isOne();
                        assertThat(statistics.inferences().queue().count()).isOne();
                    });
        }
    }

    /** Steps that the submitting thread executes take no more stack than one. */
    @Tag("slow")
    @Test
    void executesALongChainOfDirectSteps() throws Exception {
        int count = 1000;
        fixture.step("one", parameter("add", "1") + parameter("execution", "SHORT"));
        String[] steps = new String[count];
        for (int i = 0; i < count; i++) {
            steps[i] =
                    step("one", "IN=" + (i == 0 ? "IN" : "t" + i), "OUT=" + (i == count - 1 ? "OUT" : "t" + (i + 1)));
        }
        fixture.ensemble("long", steps);
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "long", 1).send().output("OUT")).containsExactly(1001f);
            assertThat(executions(server, "one")).isEqualTo(count);
            assertThat(copies(server, "one")).isZero();
        }
    }
}
