package dev.nereid.benchmarks.load;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ResponseObserver;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Workload on a server within this process: the measuring thread sends a request and waits for its response. Owned by,
 * and confined to, that thread, but for the observer.
 */
public final class SynchronousLoad implements Workload, AutoCloseable {
    private final String name;
    private final InferenceServer server;
    private final boolean onInstanceThreads;
    private final Arena arena = Arena.ofShared();
    private final InferRequest request;

    /**
     * Prepares a load.
     *
     * @param name the row of the table
     * @param server the server under load
     * @param onInstanceThreads whether no request may be executed by the thread that sends it
     */
    public SynchronousLoad(
            String name, InferenceServer server, String model, InferBody body, boolean onInstanceThreads) {
        this.name = name;
        this.server = server;
        this.onInstanceThreads = onInstanceThreads;
        MemorySegment content = MemorySegment.ofBuffer(body.tensor());
        MemorySegment data = arena.allocate(content.byteSize()).copyFrom(content);
        request = InferRequest.of(
                ModelRef.latest(model),
                List.of(InputTensor.of(body.input(), InferBody.TYPE, body.shape(), data, MemoryPlace.HOST)),
                () -> {});
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException {
        LatencyHistogram latencies = new LatencyHistogram();
        long start = System.nanoTime();
        long end = start + time.toNanos();
        long before = start;
        while (before - end < 0) {
            Response response = new Response(Thread.currentThread(), onInstanceThreads);
            server.infer(request, response);
            response.await();
            long after = System.nanoTime();
            latencies.record(after - before);
            before = after;
        }
        double seconds = (double) (before - start) / TimeUnit.SECONDS.toNanos(1);
        return new Sample(latencies.total() / seconds, latencies.percentileMicros(50), latencies.percentileMicros(99));
    }

    @Override
    public void close() {
        arena.close();
    }

    /** Wakes the thread that waits for it. */
    private static final class Response implements ResponseObserver {
        private final Thread thread;
        private final boolean onInstanceThread;
        private volatile boolean completed;
        private volatile String failure = "";

        Response(Thread thread, boolean onInstanceThread) {
            this.thread = thread;
            this.onInstanceThread = onInstanceThread;
        }

        void await() throws IOException {
            while (!completed) {
                LockSupport.park(this);
            }
            if (!failure.isEmpty()) {
                throw new IOException(failure);
            }
        }

        @Override
        public boolean isLong() {
            return onInstanceThread;
        }

        @Override
        public void onResponse(InferResponse response) {
            response.close();
            complete("");
        }

        @Override
        public void onCompleted() {
            complete("an end without a response (expected: one response)");
        }

        @Override
        public void onError(InferenceException error) {
            complete(error.code() + ": " + error.getMessage());
        }

        private void complete(String reason) {
            failure = reason;
            completed = true;
            LockSupport.unpark(thread);
        }
    }
}
