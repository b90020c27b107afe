package dev.nereid.server;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks large requests on background threads, off the event loop. Large are requests with many bytes of strings to
 * validate or to copy out of client memory. Safe for use by any thread: a concurrent map holds the sequences.
 *
 * <p>Requests of one sequence keep their order: a request that follows one in the background waits for it there. Other
 * requests have no order among themselves.
 */
final class LargeRequestExecutor implements AutoCloseable {
    /** The minimum bytes to be checked of a large request. They take a quarter of a millisecond. */
    static final long LARGE_BYTES = 256L << 10;

    /** The cost of an input besides its bytes. */
    private static final int INPUT_COST = 64;

    private static final int THREADS = 2;
    private static final long CLOSE_TIMEOUT_SECONDS = 1;
    private static final Logger LOG = LoggerFactory.getLogger(LargeRequestExecutor.class);

    private final Executor threads;
    /**
     * Runs a task at once when the threads have ended or cannot be started. The observer of its request must be
     * notified.
     */
    private final Executor tasks;

    private final ConcurrentMap<SequenceKey, CompletableFuture<Void>> sequences = new ConcurrentHashMap<>();

    /** Identifies a sequence of one model. */
    private record SequenceKey(String model, Sequence.Id id) {}

    /** Checks a request and submits it to the scheduler, on any thread. */
    interface Submission {
        /** Checks a request and submits it; the observer is notified of every outcome. */
        Cancellation submit(InferRequest request, ResponseObserver observer);

        /** Counts, in its turn, a request that was cancelled before its check, and ends its sequence. */
        void cancelled(InferRequest request);
    }

    LargeRequestExecutor() {
        // Starts no thread before there is work for it.
        this(Executors.newFixedThreadPool(
                THREADS,
                Thread.ofPlatform()
                        .name("check/", 0)
                        .daemon(true)
                        .inheritInheritableThreadLocals(false)
                        .factory()));
    }

    LargeRequestExecutor(Executor threads) {
        this.threads = threads;
        tasks = task -> {
            try {
                threads.execute(task);
            } catch (RejectedExecutionException _) {
                task.run();
            } catch (OutOfMemoryError e) { // the log detects fatal errors; a future would swallow this one
                LOG.atError().setCause(e).log("thread not started");
                task.run();
            }
        };
    }

    /** Returns whether a request belongs in the background. It is large, or follows such a request in its sequence. */
    boolean accepts(InferRequest request) {
        return isLarge(request) || (!sequences.isEmpty() && follows(request));
    }

    private static boolean isLarge(InferRequest request) {
        List<InputTensor> inputs = request.inputs();
        long all = request.id().length();
        for (int i = 0; i < inputs.size(); i++) {
            InputTensor input = inputs.get(i);
            all += INPUT_COST + input.name().length() + input.data().byteSize();
        }
        if (all <= LARGE_BYTES) {
            return false;
        }
        long checked = request.id().length();
        for (InputTensor input : inputs) {
            checked += INPUT_COST + input.name().length();
            if (input.datatype().equals(DataType.BYTES.name())) {
                checked += input.data().byteSize();
            }
        }
        return checked > LARGE_BYTES;
    }

    private boolean follows(InferRequest request) {
        Optional<SequenceKey> key = key(request);
        return key.isPresent() && sequences.containsKey(key.get());
    }

    private static Optional<SequenceKey> key(InferRequest request) {
        return request.options()
                .sequence()
                .map(sequence -> new SequenceKey(request.model().name(), sequence.id()));
    }

    /** Submits a request in the background; returns the handle by which the caller cancels it. */
    Cancellation submit(InferRequest request, ResponseObserver observer, Submission submission) {
        PendingRequest waiting = new PendingRequest(request, observer, submission);
        Optional<SequenceKey> key = key(request);
        if (key.isEmpty()) {
            tasks.execute(waiting);
            return waiting;
        }
        CompletableFuture<Void> completed = new CompletableFuture<>();
        CompletableFuture<Void> previous = sequences.put(key.get(), completed);
        Runnable last = () -> {
            try {
                waiting.run();
            } finally { // requests that follow wait for nothing else
                sequences.remove(key.get(), completed);
                completed.complete(null);
            }
        };
        if (previous == null) {
            tasks.execute(last);
        } else {
            CompletableFuture<Void> _ = previous.thenRunAsync(last, tasks);
        }
        return waiting;
    }

    /** Waits for requests that are being checked. Called once, when the server refuses requests. */
    @Override
    public void close() {
        if (!(threads instanceof ExecutorService service)) {
            return;
        }
        service.shutdown();
        try {
            if (!service.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                LOG.atWarn().log("request checks still running at shutdown");
            }
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * A request that waits for its check in the background. Both sides of a cancellation write first and read then.
     */
    private static final class PendingRequest implements Cancellation, Runnable {
        private final InferRequest request;
        private final ResponseObserver observer;
        private final Submission submission;
        private volatile boolean cancelled;
        private volatile @Nullable Cancellation submitted;

        PendingRequest(InferRequest request, ResponseObserver observer, Submission submission) {
            this.request = request;
            this.observer = observer;
            this.submission = submission;
        }

        @Override
        public void run() {
            try {
                if (cancelled) {
                    try {
                        submission.cancelled(request);
                    } finally {
                        fail(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));
                    }
                } else {
                    submit();
                }
            } catch (RuntimeException | Error e) { // of an observer: other requests go on
                LOG.atError()
                        .addKeyValue("model", request.model())
                        .setCause(e)
                        .log("request check failed (model '{}')", request.model());
            }
        }

        private void submit() {
            Cancellation handle;
            try {
                handle = submission.submit(request, observer);
            } catch (Error e) { // such as of a mapped file that its owner truncated, before the request is in a queue
                fail(new InferenceException(ErrorCode.INTERNAL, "internal error: " + e));
                throw e;
            }
            submitted = handle;
            if (cancelled) {
                handle.cancel();
            }
        }

        private void fail(InferenceException error) {
            request.release().run();
            observer.onError(error);
        }

        @Override
        public void cancel() {
            cancelled = true;
            Cancellation handle = submitted;
            if (handle != null) {
                handle.cancel();
            }
        }
    }
}
