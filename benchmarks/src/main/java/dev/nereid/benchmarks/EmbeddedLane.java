package dev.nereid.benchmarks;

import dev.nereid.api.InferCall;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ResponseObserver;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/**
 * One call after the other to a server within this process. The next one starts on the thread that tells the answer to
 * the last one; the first one starts on the thread that measures. Confined to them in this order: the server hands each
 * call on safely.
 */
final class EmbeddedLane {
    private final InferenceServer server;
    private final InferCall call;
    private final LatencyHistogram latencies = new LatencyHistogram();
    private String failure = "";
    private CountDownLatch done = new CountDownLatch(0);
    private long endNanos;

    /**
     * Creates a lane.
     *
     * @param server who is asked
     * @param call what it is asked, over and over; its release does nothing
     */
    EmbeddedLane(InferenceServer server, InferCall call) {
        this.server = server;
        this.call = call;
    }

    /**
     * Begins a period of load.
     *
     * @param end when no further call is counted nor started, on the scale of {@link System#nanoTime()}
     * @param ended counted down when the last call has ended
     */
    void start(long end, CountDownLatch ended) {
        latencies.clear();
        failure = "";
        endNanos = end;
        done = ended;
        call();
    }

    /** Returns the latencies of the period. To be read when the period has ended. */
    LatencyHistogram latencies() {
        return latencies;
    }

    /** Returns what made the lane stop before its time. To be read when the period has ended. */
    Optional<String> failure() {
        return failure.isEmpty() ? Optional.empty() : Optional.of(failure);
    }

    private void call() {
        server.infer(call, new Answer(System.nanoTime()));
    }

    private void fail(String reason) {
        failure = reason;
        done.countDown();
    }

    private final class Answer implements ResponseObserver {
        private final long startNanos;

        Answer(long startNanos) {
            this.startNanos = startNanos;
        }

        @Override
        public void onResponse(InferResponse response) {
            response.close();
            long now = System.nanoTime();
            if (now - endNanos < 0) {
                latencies.record(now - startNanos);
                call();
            } else {
                done.countDown();
            }
        }

        @Override
        public void onEnd() {
            fail("an end without a response (expected: one response)");
        }

        @Override
        public void onError(InferenceException error) {
            fail(error.code() + ": " + error.getMessage());
        }
    }
}
