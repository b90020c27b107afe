package dev.nereid.distribution.parity;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.ScriptedModels;
import dev.nereid.distribution.testing.TensorBytes;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests the steps of ensembles while their requests wait, fail or are limited, over each protocol. */
@Timeout(120)
final class EnsembleStepsIT {
    private static final int CONCURRENT = 6;
    private static final int MAX_BATCH = 8;

    @TempDir
    private static Path directory;

    private static EnsembleServer server;
    private static ScriptedModels models;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        server = new EnsembleServer(directory);
        models = server.models();
    }

    @AfterEach
    void awaitCompletion() {
        server.awaitCompletion();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static Scenario request(String ensemble, String id, float value) {
        return Scenario.of(id, ensemble).withId(id).in("INPUT0", "FP32", floats(value), 1, 1);
    }

    @ParameterizedTest
    @EnumSource
    void independentStepsOverlap(Protocol protocol) throws Exception {
        String id = "overlap-" + protocol;
        CompletableFuture<Outcome> outcome = server.begin(
                protocol, request("fork", id, 1).withParameter("left", "gate").withParameter("right", "gate"));

        models.awaitWaiting(id, "left");
        models.awaitWaiting(id, "right"); // while the left one waits
        assertThat(outcome).isNotDone();
        models.open(id, "left");
        models.open(id, "right");

        Outcome.Response response = response(EnsembleServer.end(outcome));
        long[] left = times(response, "LEFT_TIMES");
        long[] right = times(response, "RIGHT_TIMES");
        assertThat(left[0]).isLessThan(right[1]);
        assertThat(right[0]).isLessThan(left[1]);
        assertThat(floatsOf(response, "LEFT")).containsExactly(1_002);
        assertThat(floatsOf(response, "RIGHT")).containsExactly(2_002);
    }

    /** The other branch ends only when it is cancelled, and the response comes when it has. */
    @ParameterizedTest
    @EnumSource
    void aFailureCancelsTheOtherSteps(Protocol protocol) throws Exception {
        String id = "failure-" + protocol;
        Scenario request =
                request("fork", id, 1).withParameter("left", "cancel").withParameter("right", "gate-fail");
        CompletableFuture<Outcome> outcome = server.begin(protocol, request);
        models.awaitWaiting(id, "left");
        models.awaitWaiting(id, "right");

        models.open(id, "right");

        assertThat(refusal(EnsembleServer.end(outcome)))
                .isEqualTo("in ensemble 'fork', the script fails (step 'right')");
    }

    @ParameterizedTest
    @EnumSource
    void aFullQueueInTheMiddleIsReported(Protocol protocol) throws Exception {
        String id = "full-" + protocol;
        CompletableFuture<Outcome> executing =
                server.begin(protocol, request("bounded", id, 1).withParameter("bounded", "gate"));
        models.awaitWaiting(id, "bounded");
        CompletableFuture<Outcome> waiting = server.begin(protocol, request("bounded", id + "-2", 2));
        Eventually.holds(
                "waits",
                EnsembleServer.SECONDS,
                () -> server.statistics("bounded").metrics().pending() == 1);

        Outcome refused = server.run(protocol, request("queued", id + "-3", 3));

        assertThat(refusal(refused))
                .isEqualTo(
                        "in ensemble 'queued', [request id: " + id + "-3] Exceeds maximum queue size (step 'bounded')");
        models.open(id, "bounded");
        assertThat(floatsOf(response(EnsembleServer.end(executing)), "OUTPUT0")).containsExactly(1);
        assertThat(floatsOf(response(EnsembleServer.end(waiting)), "OUTPUT0")).containsExactly(2);
        assertThat(floatsOf(response(server.run(protocol, request("queued", id + "-4", 4))), "OUTPUT0"))
                .containsExactly(105);
    }

    @ParameterizedTest
    @EnumSource
    void anOutputThatTheLastStepOmitsIsMissing(Protocol protocol) throws Exception {
        Outcome outcome = server.run(protocol, request("chain", "omitted", 1).withParameter("third", "omit"));

        assertThat(response(outcome).outputs()).isEmpty();
    }

    /** Requests to the models are served while a request to the ensemble waits in one, and are counted apart from it. */
    @ParameterizedTest
    @EnumSource
    void modelsOfStepsServeDirectRequests(Protocol protocol) throws Exception {
        String id = "direct-" + protocol;
        long chain = server.executed("chain");
        long first = server.executed("first");
        long second = server.executed("second");
        long third = server.executed("third");
        CompletableFuture<Outcome> outcome =
                server.begin(protocol, request("chain", id, 1).withParameter("second", "gate"));
        models.awaitWaiting(id, "second");

        for (int i = 0; i < 3; i++) {
            assertThat(floatsOf(response(server.run(protocol, request("first", "", 1))), "OUTPUT0"))
                    .containsExactly(2);
            assertThat(floatsOf(response(server.run(protocol, request("second", "", 1))), "OUTPUT0"))
                    .containsExactly(11);
        }
        assertThat(floatsOf(response(server.run(protocol, request("third", "", 1))), "OUTPUT0"))
                .containsExactly(101);

        assertThat(outcome).isNotDone();
        models.open(id, "second");
        assertThat(floatsOf(response(EnsembleServer.end(outcome)), "OUTPUT0")).containsExactly(112);
        Eventually.holds("counted", EnsembleServer.SECONDS, () -> server.executed("chain") == chain + 1);
        assertThat(server.executed("first")).isEqualTo(first + 4);
        assertThat(server.executed("second")).isEqualTo(second + 4);
        assertThat(server.executed("third")).isEqualTo(third + 2);
    }

    /** The requests that follow from a batch are offered to the next model together, and it executes them as one batch. */
    @ParameterizedTest
    @EnumSource
    void aBatchOfOneStepIsABatchOfTheNext(Protocol protocol) throws Exception {
        String id = "batch-" + protocol;
        Map<Long, Long> before = batches("batch_two");
        CompletableFuture<Outcome> blocking =
                server.begin(protocol, request("batches", id, 1).withParameter("batch_one", "gate"));
        models.awaitWaiting(id, "batch_one");
        List<CompletableFuture<Outcome>> requests = new ArrayList<>();
        for (int i = 0; i < MAX_BATCH; i++) {
            requests.add(server.begin(protocol, request("batches", id + i, i)));
        }
        Eventually.holds(
                "wait",
                EnsembleServer.SECONDS,
                () -> server.statistics("batch_one").metrics().pending() == MAX_BATCH);

        models.open(id, "batch_one");

        assertThat(floatsOf(response(EnsembleServer.end(blocking)), "OUTPUT0")).containsExactly(4);
        for (int i = 0; i < MAX_BATCH; i++) {
            assertThat(floatsOf(response(EnsembleServer.end(requests.get(i))), "OUTPUT0"))
                    .containsExactly(i + 3);
        }
        before.merge(1L, 1L, Long::sum);
        before.merge((long) MAX_BATCH, 1L, Long::sum);
        Eventually.holds(
                "counted", EnsembleServer.SECONDS, () -> batches("batch_two").equals(before));
        assertThat(batches("batch_one")).isEqualTo(before);
    }

    /** Returns the number of executions of a model, by the size of their batches. */
    private static Map<Long, Long> batches(String model) {
        return server.statistics(model).executions().batches().stream()
                .collect(Collectors.toMap(
                        BatchStatistics::batchSize,
                        batch -> batch.compute().infer().count()));
    }

    /** Two instances could execute the step at the same time. */
    @ParameterizedTest
    @EnumSource
    void aStepIsLimited(Protocol protocol) throws Exception {
        List<CompletableFuture<Outcome>> requests = new ArrayList<>();
        for (int i = 0; i < CONCURRENT; i++) {
            requests.add(server.begin(protocol, request("limited", "limited-" + protocol + i, i)));
        }

        List<long[]> executions = new ArrayList<>();
        for (int i = 0; i < CONCURRENT; i++) {
            Outcome.Response response = response(EnsembleServer.end(requests.get(i)));
            assertThat(floatsOf(response, "OUTPUT0")).containsExactly(1_001 + i);
            executions.add(times(response, "TIMES"));
        }
        executions.sort(Comparator.comparingLong(times -> times[0]));
        for (int i = 1; i < CONCURRENT; i++) {
            assertThat(executions.get(i)[0]).isGreaterThan(executions.get(i - 1)[1]);
        }
    }

    @ParameterizedTest
    @EnumSource
    void theWaitForALimitEndsWithTheTimeout(Protocol protocol) throws Exception {
        String id = "late-" + protocol;
        CompletableFuture<Outcome> outcome =
                server.begin(protocol, request("limited", id, 1).withParameter("left", "gate"));
        models.awaitWaiting(id, "left");

        Outcome late = server.run(protocol, request("limited", id + "-2", 2).withParameter("timeout", 1_000L));

        assertThat(refusal(late)).startsWith("in ensemble 'limited', ").endsWith("Request timeout expired");
        assertThat(outcome).isNotDone();
        models.open(id, "left");
        assertThat(floatsOf(response(EnsembleServer.end(outcome)), "OUTPUT0")).containsExactly(1_002);
    }

    @ParameterizedTest
    @EnumSource
    void stepsGetPriorityTimeoutAndDeadline(Protocol protocol) throws Exception {
        boolean hasDeadline = protocol == Protocol.GRPC || protocol == Protocol.GRPC_STREAM;
        float micros = 60_000_000;

        Outcome.Response response = response(server.run(
                protocol,
                request("informed", "", 1).withParameter("priority", 2L).withParameter("timeout", (long) micros)));

        float[] info = floatsOf(response, "INFO");
        assertThat(info[0]).isEqualTo(2);
        assertThat(info[1]).as("the rest of the timeout").isPositive().isLessThanOrEqualTo(micros);
        assertThat(floatsOf(response, "DEADLINE")).containsExactly(hasDeadline ? 1 : 0);
    }

    /** Returns an id for each protocol, since they share a server. */
    private static long number(long first, Protocol protocol) {
        return first + List.of(Protocol.values()).indexOf(protocol);
    }

    @ParameterizedTest
    @EnumSource(
            value = Protocol.class,
            names = {"EMBEDDED"},
            mode = EnumSource.Mode.EXCLUDE)
    void sequencesGoThroughAStep(Protocol protocol) throws Exception {
        for (String type : List.of("UINT64", "STRING")) {
            Object one = type.equals("STRING") ? "one-" + protocol : (Object) number(100, protocol);
            Object other = type.equals("STRING") ? "other-" + protocol : (Object) number(200, protocol);
            assertThat(sum(protocol, type, one, 1, true, false)).isEqualTo(102);
            assertThat(sum(protocol, type, other, 50, true, false)).isEqualTo(151);
            assertThat(sum(protocol, type, one, 2, false, false)).isEqualTo(105);
            assertThat(sum(protocol, type, other, 7, false, true)).isEqualTo(159);
            assertThat(sum(protocol, type, one, 3, false, true)).isEqualTo(109);
            assertThat(sum(protocol, type, one, 3, true, true)).isEqualTo(104);
        }
    }

    private static float sum(Protocol protocol, String type, Object id, float value, boolean start, boolean end)
            throws Exception {
        Outcome.Response response = response(server.run(
                protocol,
                request("sequence_" + type, "", value)
                        .withParameter("sequence_id", id)
                        .withParameter("sequence_start", start)
                        .withParameter("sequence_end", end)));
        assertThat(response.parameters())
                .containsEntry("sequence_id", id.toString())
                .containsEntry("sequence_start", "" + start)
                .containsEntry("sequence_end", "" + end);
        return floatsOf(response, "OUTPUT0")[0];
    }

    /** All protocols share the entry. */
    @ParameterizedTest
    @EnumSource
    void responsesComeFromTheCache(Protocol protocol) throws Exception {
        Scenario request = Scenario.of("cached", "cached").in("INPUT0", "FP32", floats(5, 6, 7), 1, 3);
        server.run(Protocol.EMBEDDED, request);
        Eventually.holds("kept", EnsembleServer.SECONDS, () -> {
            long steps = server.executed("first");
            try {
                server.run(Protocol.EMBEDDED, request);
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            return server.executed("first") == steps;
        });
        long hits = server.statistics("cached").inferences().cacheHit().count();
        long steps = server.executed("first") + server.executed("second");

        Outcome.Response response = response(server.run(protocol, request.withId("other id")));

        assertThat(response.id()).isEqualTo("other id");
        assertThat(floatsOf(response, "OUTPUT0")).containsExactly(16, 17, 18);
        assertThat(server.statistics("cached").inferences().cacheHit().count()).isEqualTo(hits + 1);
        assertThat(server.executed("first") + server.executed("second")).isEqualTo(steps);
    }

    private static Outcome.Response response(Outcome outcome) {
        assertThat(outcome).isInstanceOf(Outcome.Completed.class);
        List<Outcome.Response> responses = ((Outcome.Completed) outcome).responses();
        assertThat(responses).hasSize(1);
        return responses.getFirst();
    }

    private static String refusal(Outcome outcome) {
        assertThat(outcome).isInstanceOf(Outcome.Refused.class);
        return ((Outcome.Refused) outcome).text();
    }

    private static Outcome.Output output(Outcome.Response response, String name) {
        return response.outputs().stream()
                .filter(output -> output.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static float[] floatsOf(Outcome.Response response, String name) {
        return TensorBytes.toFloats(output(response, name).data().toByteArray());
    }

    private static long[] times(Outcome.Response response, String name) {
        long[] times = new long[2];
        output(response, name)
                .data()
                .asReadOnlyByteBuffer()
                .order(ByteOrder.LITTLE_ENDIAN)
                .asLongBuffer()
                .get(times);
        return times;
    }
}
