package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.lang.System.Logger.Level;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Calls {@code is_ready} of the model in one process. Safe for use by any thread.
 *
 * <p>One call is in progress in the process at a time. A check begins it, or waits for the one in progress; checks at
 * the same time share one result. A check fails after five seconds, and the call goes on: the next check waits for its
 * result. Results are completed by the executor of the model, since the thread that reads frames must not run the
 * server's code.
 */
public final class ReadyChecks {
    private static final long LIMIT_MILLIS = 5000;
    private static final long LIMIT = TimeUnit.MILLISECONDS.toNanos(LIMIT_MILLIS);

    /** A timer that is this late is lost: its executor was full. */
    private static final long LATE = TimeUnit.SECONDS.toNanos(1);

    private static final int FALSE = 0;
    private static final int TRUE = 1;
    private static final int ERROR = 2;

    private static final int MAX_TEXT = 64 << 10;
    private static final int MAX_LOG_TEXT = 256 << 10;

    private final String instance;
    private final boolean exists;
    private final FrameSink frames;
    private final ProcessLog log;
    private final Executor executor;
    private final Delays delays;
    private final LongSupplier nanoTime;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private long last;

    /** {@code true} while the process has the last call in progress. */
    @GuardedBy("lock")
    private boolean calling;

    /** The check that waits for the call; {@code null} for none, as after its limit. */
    @GuardedBy("lock")
    private @Nullable Check open;

    /** When the timer runs that was started last. */
    @GuardedBy("lock")
    private long timerAt;

    @GuardedBy("lock")
    private boolean timerRuns;

    /** Why checks fail: the process has ended. */
    @GuardedBy("lock")
    private @Nullable String closed;

    /** The text that was logged last, so that a check each second does not fill the log. */
    @GuardedBy("lock")
    private String logged = "";

    /** A check that waits. */
    private record Check(CompletableFuture<Void> result, long startNanos, boolean first) {}

    ReadyChecks(
            String instance,
            boolean exists,
            FrameSink frames,
            ProcessLog log,
            Executor executor,
            Delays delays,
            LongSupplier nanoTime) {
        this.instance = requireNonNull(instance, "instance");
        this.exists = exists;
        this.frames = requireNonNull(frames, "frames");
        this.log = requireNonNull(log, "log");
        this.executor = requireNonNull(executor, "executor");
        this.delays = requireNonNull(delays, "delays");
        this.nanoTime = requireNonNull(nanoTime, "nanoTime");
    }

    /**
     * Creates the checks of a process that is initialized.
     *
     * @param instance the name of the instance, for texts
     * @param exists whether the model has {@code is_ready}, which DONE says; without it the process is ready until its
     *     end
     * @param frames receives CHECK_READY; must not call this object
     * @param log receives tracebacks
     * @param context the model, for its executor
     * @param nanoTime the clock, in nanoseconds
     * @return the checks, to be closed when the process ends
     */
    public static ReadyChecks of(
            String instance,
            boolean exists,
            FrameSink frames,
            ProcessLog log,
            ModelContext context,
            LongSupplier nanoTime) {
        Executor executor = context.executor();
        return new ReadyChecks(instance, exists, frames, log, executor, Delays.on(executor), nanoTime);
    }

    /** Returns whether the process has a call in progress. */
    public boolean isCalling() {
        lock.lock();
        try {
            return calling;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Checks whether the model is ready, as {@link dev.nereid.spi.ModelInstance#checkReady}. Never blocks. Callers
     * cannot complete the stage for others.
     */
    public CompletionStage<Void> check() {
        lock.lock();
        try {
            if (closed != null) {
                return CompletableFuture.failedFuture(new BackendException(ErrorCode.UNAVAILABLE, closed));
            }
            if (!exists) {
                return CompletableFuture.completedStage(null);
            }
            Check check = open;
            if (check == null) {
                check = new Check(new CompletableFuture<>(), nanoTime.getAsLong(), !calling);
                open = check;
                startTimer(check.startNanos());
                if (!calling) {
                    calling = true;
                    last++;
                    // Does not block, and does not call this object. Under the lock, so that no result comes before.
                    frames.send(new FrameWriter()
                            .begin(FrameType.CHECK_READY, 0, 0, last)
                            .end());
                }
            }
            return own(check.result());
        } finally {
            lock.unlock();
        }
    }

    /** Returns a stage of a caller, which completes with the result of all. */
    private static CompletionStage<Void> own(CompletableFuture<Void> result) {
        CompletableFuture<Void> own = new CompletableFuture<>();
        CompletableFuture<Void> _ = result.whenComplete((_, failure) -> {
            if (failure == null) {
                own.complete(null);
            } else {
                own.completeExceptionally(failure);
            }
        });
        return own;
    }

    @GuardedBy("lock")
    private void startTimer(long now) {
        if (!timerRuns || now - timerAt > LATE) {
            timerRuns = true;
            timerAt = now + LIMIT;
            delays.run(LIMIT_MILLIS, this::onTimer);
        }
    }

    /** Fails a check that has waited too long. One timer serves all checks. */
    private void onTimer() {
        Check late;
        lock.lock();
        try {
            timerRuns = false;
            late = open;
            if (late == null) {
                return;
            }
            long left = late.startNanos() + LIMIT - nanoTime.getAsLong();
            if (left > 0) {
                timerRuns = true;
                timerAt = late.startNanos() + LIMIT;
                delays.run(TimeUnit.NANOSECONDS.toMillis(left) + 1, this::onTimer);
                return;
            }
            open = null;
        } finally {
            lock.unlock();
        }
        String call = late.first() ? "user-defined" : "in-flight";
        late.result()
                .completeExceptionally(new BackendException(
                        ErrorCode.UNAVAILABLE, "Timed out waiting for " + call + " is_ready() response"));
    }

    /** Handles READY; throws {@link FrameException} if the frame is malformed, or no call has its id. */
    public void onReady(FrameReader frame) {
        int flags = frame.flags();
        if (flags > ERROR) {
            throw new FrameException("result of is_ready: " + flags + " (expected: 0 to " + ERROR + ")");
        }
        String text = ReportTexts.cut(frame, "text of is_ready", MAX_TEXT);
        String trace = ReportTexts.cut(frame, "text for the log of is_ready", MAX_LOG_TEXT);
        String toLog = flags == ERROR ? trace.isEmpty() ? text : trace : "";
        boolean isNew;
        Check waiting;
        lock.lock();
        try {
            if (closed != null) {
                return;
            }
            if (!calling || frame.id() != last) {
                throw new FrameException("id of is_ready: " + frame.id() + " (expected: "
                        + (calling ? "that of the call, " + last : "none, since no call is in progress") + ")");
            }
            calling = false;
            isNew = !toLog.isEmpty() && !toLog.equals(logged);
            logged = toLog;
            waiting = open;
            open = null;
        } finally {
            lock.unlock();
        }
        if (isNew) {
            log.write(Level.ERROR, "is_ready failed: " + toLog);
        }
        if (waiting != null) {
            complete(waiting, failure(flags, text));
        }
    }

    private Optional<BackendException> failure(int flags, String text) {
        return switch (flags) {
            case TRUE -> Optional.empty();
            case FALSE ->
                Optional.of(new BackendException(
                        ErrorCode.UNAVAILABLE, "Model '" + instance + "' is not ready (user-defined check failed)."));
            default -> Optional.of(new BackendException(ErrorCode.INTERNAL, text));
        };
    }

    private void complete(Check check, Optional<BackendException> failure) {
        Runnable completion = () -> failure.ifPresentOrElse(
                check.result()::completeExceptionally, () -> check.result().complete(null));
        try {
            executor.execute(completion);
        } catch (RejectedExecutionException _) { // closed or full: late or on this thread is better than never
            completion.run();
        }
    }

    /** Fails waiting and later checks with a text for clients, how the process has ended. Later calls do nothing. */
    public void close(String reason) {
        Check waiting;
        lock.lock();
        try {
            if (closed != null) {
                return;
            }
            closed = requireNonNull(reason, "reason");
            waiting = open;
            open = null;
        } finally {
            lock.unlock();
        }
        if (waiting != null) {
            complete(waiting, Optional.of(new BackendException(ErrorCode.UNAVAILABLE, reason)));
        }
    }
}
