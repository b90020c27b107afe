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
 * walk or to copy out of client memory. Safe for use by any thread: a concurrent map holds the sequences.
 *
 * <p>Calls of one sequence keep their order: one that follows a call in the background waits for it there. Other calls
 * have no order among themselves.
 */
final class LargeRequestExecutor implements AutoCloseable {
    /** The bytes to be looked at from which on a call is for the background; they take a quarter of a millisecond. */
    static final long LARGE_BYTES = 256L << 10;

    /** What an input costs besides its bytes. */
    private static final int INPUT_COST = 64;

    private static final int THREADS = 2;
    private static final long CLOSE_TIMEOUT_SECONDS = 1;
    private static final Logger LOG = LoggerFactory.getLogger(LargeRequestExecutor.class);

    private final Executor threads;
    /** Runs a task at once when the threads have ended or cannot be started: the observer of its call must be told. */
    private final Executor tasks;

    private final ConcurrentMap<SequenceKey, CompletableFuture<Void>> sequences = new ConcurrentHashMap<>();

    /** Identifies a sequence of one model. */
    private record SequenceKey(String model, Sequence.Id id) {}

    /** Checks a request and submits it to the scheduler, on any thread. */
    @FunctionalInterface
    interface Submission {
        /** Checks a call and submits it; the observer is told whatever comes of it. */
        Cancellation submit(InferRequest call, ResponseObserver observer);
    }

    LargeRequestExecutor() {
        // Starts no thread before there is work for it.
        this(Executors.newFixedThreadPool(
                THREADS, Thread.ofPlatform().name("check/", 0).daemon(true).factory()));
    }

    LargeRequestExecutor(Executor threads) {
        this.threads = threads;
        tasks = task -> {
            try {
                threads.execute(task);
            } catch (RejectedExecutionException _) {
                task.run();
            } catch (OutOfMemoryError e) { // the log looks for fatal errors; a future would keep this one to itself
                LOG.atError().setCause(e).log("thread not started");
                task.run();
            }
        };
    }

    /** Says whether a call is for the background: it is large, or follows such a call in its sequence. */
    boolean accepts(InferRequest call) {
        return isLarge(call) || (!sequences.isEmpty() && follows(call));
    }

    private static boolean isLarge(InferRequest call) {
        List<InputTensor> inputs = call.inputs();
        long all = call.id().length();
        for (int i = 0; i < inputs.size(); i++) {
            InputTensor input = inputs.get(i);
            all += INPUT_COST + input.name().length() + input.data().byteSize();
        }
        if (all <= LARGE_BYTES) {
            return false;
        }
        long checked = call.id().length();
        for (InputTensor input : inputs) {
            checked += INPUT_COST + input.name().length();
            if (input.datatype().equals(DataType.BYTES.name())) {
                checked += input.data().byteSize();
            }
        }
        return checked > LARGE_BYTES;
    }

    private boolean follows(InferRequest call) {
        Optional<SequenceKey> key = key(call);
        return key.isPresent() && sequences.containsKey(key.get());
    }

    private static Optional<SequenceKey> key(InferRequest call) {
        return call.options()
                .sequence()
                .map(sequence -> new SequenceKey(call.model().name(), sequence.id()));
    }

    /**
     * Has a call submitted in the background.
     *
     * @param call the call
     * @param observer who is told
     * @param submission checks and submits the call
     * @return the handle by which the caller withdraws the call
     */
    Cancellation submit(InferRequest call, ResponseObserver observer, Submission submission) {
        PendingRequest waiting = new PendingRequest(call, observer, submission);
        Optional<SequenceKey> key = key(call);
        if (key.isEmpty()) {
            tasks.execute(waiting);
            return waiting;
        }
        CompletableFuture<Void> turn = new CompletableFuture<>();
        CompletableFuture<Void> before = sequences.put(key.get(), turn);
        Runnable last = () -> {
            try {
                waiting.run();
            } finally { // calls that follow wait for nothing else
                sequences.remove(key.get(), turn);
                turn.complete(null);
            }
        };
        if (before == null) {
            tasks.execute(last);
        } else {
            CompletableFuture<Void> _ = before.thenRunAsync(last, tasks);
        }
        return waiting;
    }

    /** Waits for calls that are being checked. Called once, when the server refuses calls. */
    @Override
    public void close() {
        if (!(threads instanceof ExecutorService service)) {
            return;
        }
        service.shutdown();
        try {
            if (!service.awaitTermination(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
                LOG.atWarn().log("checks of calls did not end");
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

        PendingRequest(InferRequest call, ResponseObserver observer, Submission submission) {
            this.request = call;
            this.observer = observer;
            this.submission = submission;
        }

        @Override
        public void run() {
            try {
                if (cancelled) {
                    fail(new InferenceException(ErrorCode.CANCELLED, "request was cancelled"));
                } else {
                    submit();
                }
            } catch (RuntimeException | Error e) { // an observer that throws, or no heap: other calls go on
                LOG.atError().addKeyValue("model", request.model()).setCause(e).log("call not checked");
            }
        }

        private void submit() {
            Cancellation handle;
            try {
                handle = submission.submit(request, observer);
            } catch (Error e) { // thrown before a queue has the call
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
