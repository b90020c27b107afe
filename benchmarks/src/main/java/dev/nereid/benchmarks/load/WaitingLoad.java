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
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Workload on a server within this process: some threads, each of which sends a request and waits for its response.
 * Owned by, and confined to, the thread that measures.
 */
public final class WaitingLoad implements Workload, AutoCloseable {
    /** As memory of the server's own. */
    private static final long ALIGNMENT = 64;

    private final Arena arena = Arena.ofShared();
    private final ThreadLoad load;

    /**
     * Prepares a load.
     *
     * @param name the row of the table
     * @param server the server under load
     */
    public WaitingLoad(String name, InferenceServer server, String model, InferBody body, int threads) {
        MemorySegment content = MemorySegment.ofBuffer(body.tensor());
        MemorySegment data = arena.allocate(content.byteSize(), ALIGNMENT).copyFrom(content);
        InferRequest request = InferRequest.of(
                ModelRef.latest(model),
                List.of(InputTensor.of(body.input(), InferBody.TYPE, body.shape(), data, MemoryPlace.HOST)),
                () -> {});
        ThreadLoad.Caller caller = () -> {
            Response response = new Response(Thread.currentThread());
            server.infer(request, response);
            response.await();
        };
        load = new ThreadLoad(name, Stream.generate(() -> caller).limit(threads).toList());
    }

    @Override
    public String name() {
        return load.name();
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        return load.load(time);
    }

    @Override
    public void close() {
        arena.close();
    }

    /** Wakes the thread that waits for it. */
    private static final class Response implements ResponseObserver {
        private final Thread thread;
        private volatile boolean completed;
        private volatile String failure = "";

        Response(Thread thread) {
            this.thread = thread;
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
            if (Thread.currentThread().threadId() != thread.threadId()) {
                LockSupport.unpark(thread);
            }
        }
    }
}
