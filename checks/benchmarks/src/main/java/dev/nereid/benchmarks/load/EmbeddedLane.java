package dev.nereid.benchmarks.load;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ResponseObserver;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;

/**
 * Sends one request after another to a server within this process. The next one starts on the thread that completes the
 * last one; the first one starts on the measuring thread. Confined to them in this order: the server publishes each
 * request safely.
 */
public final class EmbeddedLane implements Lane {
    /** Outcomes of a request that are counted. */
    public enum Ending {
        /** Called at each completion. */
        RESPONSE,
        /** It waited too long. */
        TIMEOUT
    }

    private static final String TIMED_OUT = "Request timeout expired";

    private final InferenceServer server;
    private final InferRequest request;
    private final Ending counted;
    private final boolean onInstanceThreads;
    private final LatencyHistogram latencies = new LatencyHistogram();
    private String failure = "";
    private CountDownLatch done = new CountDownLatch(0);
    private long endNanos;

    /**
     * Creates a lane.
     *
     * @param request the request that is sent repeatedly; its release does nothing
     * @param counted which calls count
     * @param onInstanceThreads whether no request may be executed by a thread that sends it
     */
    EmbeddedLane(InferenceServer server, InferRequest request, Ending counted, boolean onInstanceThreads) {
        this.server = server;
        this.request = request;
        this.counted = counted;
        this.onInstanceThreads = onInstanceThreads;
    }

    @Override
    public void start(long end, CountDownLatch ended) {
        latencies.clear();
        failure = "";
        endNanos = end;
        done = ended;
        next();
    }

    @Override
    public LatencyHistogram latencies() {
        return latencies;
    }

    @Override
    public Optional<String> failure() {
        return failure.isEmpty() ? Optional.empty() : Optional.of(failure);
    }

    private void next() {
        server.infer(request, new Observer(System.nanoTime()));
    }

    private void ended(Ending ending, long startNanos) {
        long now = System.nanoTime();
        if (now - endNanos >= 0) {
            done.countDown();
            return;
        }
        if (ending == counted) {
            latencies.record(now - startNanos);
        }
        next();
    }

    private void fail(String reason) {
        failure = reason;
        done.countDown();
    }

    private final class Observer implements ResponseObserver {
        private final long startNanos;

        Observer(long startNanos) {
            this.startNanos = startNanos;
        }

        @Override
        public boolean isLong() {
            return onInstanceThreads;
        }

        @Override
        public void onResponse(InferResponse response) {
            response.close();
            ended(Ending.RESPONSE, startNanos);
        }

        @Override
        public void onCompleted() {
            fail("an end without a response (expected: one response)");
        }

        @Override
        public void onError(InferenceException error) {
            if (counted == Ending.TIMEOUT && TIMED_OUT.equals(error.getMessage())) {
                ended(Ending.TIMEOUT, startNanos);
            } else {
                fail(error.code() + ": " + error.getMessage());
            }
        }
    }
}
