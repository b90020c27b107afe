package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests that wait for too long, or find a full queue. */
@Timeout(60)
final class QueueLimitsTest {
    private static final long TIMEOUT_MILLIS = 100;

    private final GatedBackend backend = new GatedBackend();

    @Test
    void rejectsWhatWaitsForTooLong() throws InterruptedException {
        long start = System.nanoTime();

        refuses("default_timeout_microseconds: " + TIMEOUT_MILLIS * 1_000, 1, "Request timeout expired");

        assertThat(System.nanoTime() - start).isGreaterThan(TimeUnit.MILLISECONDS.toNanos(TIMEOUT_MILLIS));
    }

    @Test
    void refusesWhatIsOneTooMuch() throws InterruptedException {
        refuses("max_queue_size: 1", 2, "[request id: late] Exceeds maximum queue size");
    }

    /**
     * Starts one long execution, and sends more requests to the model.
     *
     * @param policy the policy of its queue
     * @param before the number of requests before it; they complete in the end
     * @param text the error of the other
     */
    private void refuses(String policy, int before, String text) throws InterruptedException {
        GatedBackend.Gate gate = backend.close("gated");
        String config = GatedBackend.tensors(4, "FP32", "[ -1 ]")
                + "instance_group { count: 1 kind: KIND_CPU }\n"
                + "dynamic_batching { default_queue_policy { " + policy + " } }";
        try (LocalServer server =
                LocalServer.with(backend).model("gated", config).start()) {
            ReceivedResponses first = server.send(request(server));
            gate.awaitExecution();
            ReceivedResponses last = before == 1 ? first : server.send(request(server));

            BackendException error = server.send(request(server).id("late")).error();
            assertThat(error).hasMessage(text);
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);

            gate.open();
            first.one();
            last.one();
        }
    }

    private static ModelRequest request(LocalServer server) {
        return server.client().request("gated").input("INPUT0", Shape.of(1, 1), 1f);
    }
}
