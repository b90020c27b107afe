package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.ReceivedRequest;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Status;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests streams whose responses arrive faster than the transport writes. */
final class ModelStreamInferCallTest {
    private static final int MAX_MESSAGES_PER_RUN = 16;
    private static final long BYTES_AHEAD = 100_000;

    /** The bytes that one response counts for. */
    private static final long RESPONSE_BYTES = 512 + Float.BYTES;

    private final StreamHarness harness = new StreamHarness(BYTES_AHEAD);

    @AfterEach
    void checkMemory() {
        harness.checkMemory();
    }

    private static ModelInferRequest request(String model, String id) {
        return TestFrontend.request(model, "FP32", TestFrontend.floats(1), 1)
                .setId(id)
                .build();
    }

    private ReceivedRequest send(String model, String id) {
        harness.send(request(model, id));
        return harness.calls.remove();
    }

    private static void respond(ReceivedRequest call, int count) {
        for (int i = 0; i < count; i++) {
            call.respond(List.of(call.input(0, "OUTPUT0")), Map.of("n", new ParameterValue.Int(i)), false);
        }
    }

    @Test
    void sendsNoResponseToARequestWhoseDeadlineHasPassed() throws Exception {
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
        try (Context.CancellableContext expired =
                Context.current().withDeadline(Deadline.after(-1, TimeUnit.SECONDS), timer)) {
            StreamHarness late = expired.call(StreamHarness::new);
            late.ready(true);
            late.send(request("plain", "p"));
            late.calls.remove().fail(ErrorCode.CANCELLED, "request was cancelled");

            assertThat(late.stream.written).isEmpty();
        } finally {
            timer.shutdownNow();
        }
    }

    @Test
    void endsTheStreamWhenItsModelIsTooFarAhead() {
        ReceivedRequest plain = send("plain", "p");
        ReceivedRequest many = send("many", "m");
        ReceivedRequest last = send("plain", "l");
        last.respondWithInputs();
        harness.ready(false);

        int given = 0;
        while (!many.isCancelled()) {
            respond(many, 1);
            given++;
        }

        // Besides: the first that waits, the one that reaches the limit, and the one that exceeds it.
        assertThat(given).isEqualTo((int) (BYTES_AHEAD / RESPONSE_BYTES) + 3);
        assertThat(plain.isCancelled()).isTrue();
        Status status = harness.stream.status;
        assertThat(status).isNotNull();
        assertThat(status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(status.getDescription())
                .isEqualTo("the client reads the stream too slowly: 100000 bytes or more of responses wait (expected:"
                        + " less; read responses as they arrive, or send fewer requests at a time)");
        assertThat(harness.stream.written).isEmpty();
        assertThat(harness.memory.buffersInUse()).isZero();
    }

    @Test
    void endsTheStreamWhenFailedResponsesAreTooFarAhead() {
        ReceivedRequest many = send("many", "m");
        harness.ready(false);

        int given = 0;
        while (!many.isCancelled()) {
            many.respondWithError(ErrorCode.INTERNAL, "no");
            given++;
        }

        assertThat(given).isLessThan((int) (BYTES_AHEAD / 512) + 3);
        assertThat(harness.stream.status).isNotNull();
    }

    @Test
    void continuesWithAClientThatReadsSlowly() {
        ReceivedRequest many = send("many", "m");
        int bursts = 20;
        int burst = (int) (BYTES_AHEAD / RESPONSE_BYTES);
        for (int i = 0; i < bursts; i++) {
            harness.ready(false);
            respond(many, burst);
            harness.ready(true);
            harness.run();
        }
        many.end();
        harness.halfClose();

        assertThat(harness.stream.status).isEqualTo(Status.OK);
        assertThat(numbers())
                .containsExactlyElementsOf(LongStream.range(0, (long) bursts * burst)
                        .map(n -> n % burst)
                        .boxed()
                        .toList());
    }

    @Test
    void writesSomeMessagesOnTheThreadAndTheRestOnAnEventLoop() {
        ReceivedRequest many = send("many", "m");
        harness.ready(false);
        respond(many, 3 * MAX_MESSAGES_PER_RUN);
        harness.ready(true);
        assertThat(harness.stream.written).hasSize(MAX_MESSAGES_PER_RUN);

        ReceivedRequest other = send("many", "o");
        respond(other, 1);
        assertThat(harness.stream.written).hasSize(MAX_MESSAGES_PER_RUN);
        harness.tasks.remove().run();
        assertThat(harness.stream.written).hasSize(2 * MAX_MESSAGES_PER_RUN);
        harness.run();

        assertThat(harness.stream.written).hasSize(3 * MAX_MESSAGES_PER_RUN + 1);
        assertThat(harness.stream.status).isNull();
        many.end();
        other.end();
        harness.halfClose();
        assertThat(harness.stream.status).isEqualTo(Status.OK);
    }

    @Test
    void leavesNothingToAnEventLoopWhenAllWasWritten() {
        ReceivedRequest many = send("many", "m");

        respond(many, 10 * MAX_MESSAGES_PER_RUN);

        assertThat(harness.stream.written).hasSize(10 * MAX_MESSAGES_PER_RUN);
        assertThat(harness.tasks).isEmpty();
        many.end();
    }

    @Test
    void endsTheStreamIfThereIsNoMemoryToWrite() {
        ReceivedRequest many = send("many", "m");
        ReceivedRequest plain = send("plain", "p");
        harness.stream.failure = new OutOfMemoryError("no memory, says the test");

        respond(many, 1);
        plain.respondWithInputs();

        assertThat(harness.stream.status).isNotNull();
        assertThat(harness.stream.status.getCode()).isEqualTo(Status.Code.INTERNAL);
        assertThat(many.isCancelled()).isTrue();
        assertThat(harness.memory.buffersInUse()).isZero();
    }

    private List<Long> numbers() {
        return harness.stream.written.stream()
                .map(ModelStreamInferResponse::getInferResponse)
                .map(response -> response.getParametersOrThrow("n").getInt64Param())
                .toList();
    }
}
