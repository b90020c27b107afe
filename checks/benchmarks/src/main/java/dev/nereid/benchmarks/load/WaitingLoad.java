package dev.nereid.benchmarks.load;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ResponseObserver;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Workload on a server within this process: threads, each of which sends a request and waits for its response.
 * Owned by, and confined to, the thread that measures.
 */
public final class WaitingLoad implements Workload, AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final ThreadLoad load;

    /**
     * Prepares a load.
     *
     * @param threads the threads that send; a single one is the measuring thread
     * @param onInstanceThreads whether no request may be executed by a thread that sends it
     */
    public WaitingLoad(
            String name, InferenceServer server, String model, InferBody body, int threads, boolean onInstanceThreads) {
        InferRequest request = body.request(model, arena);
        ThreadLoad.Caller caller = () -> {
            Response response = new Response(Thread.currentThread(), onInstanceThreads);
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
            if (Thread.currentThread().threadId() != thread.threadId()) {
                LockSupport.unpark(thread);
            }
        }
    }
}
