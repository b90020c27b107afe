package dev.nereid.scheduler.instance;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Checks whether one instance can serve. Lock-free; safe for use by any thread.
 *
 * <p>One check is in progress at a time, and all callers share its result meanwhile. A check that takes too long gets a
 * result at its limit, and goes on: that result stays until the check ends. So checks and waiting calls do not
 * accumulate.
 */
final class ReadinessCheck {
    /** Longer than the five seconds after which backends give up a check of their users. */
    static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final String instance;
    private final Supplier<CompletionStage<Void>> check;
    private final Consumer<Throwable> log;

    /**
     * The state of the check. Immutable.
     *
     * @param running the check that has not ended; {@code null} for none
     * @param last the result of the last check, or of the running one if it takes too long
     */
    private record State(@Nullable CompletableFuture<Readiness> running, Readiness last) {}

    private final AtomicReference<State> state = new AtomicReference<>(new State(null, Readiness.READY));

    /** Creates the check of an instance. {@code log} receives throwables that a backend must not throw. */
    ReadinessCheck(String instance, Supplier<CompletionStage<Void>> check, Consumer<Throwable> log) {
        this.instance = instance;
        this.check = check;
        this.log = log;
    }

    /** Returns the result of the last check, ready before the first. */
    Readiness last() {
        return state.get().last();
    }

    /**
     * Begins a check, unless one is in progress.
     *
     * @param timer one of its timeouts is held during the check, if that takes any time
     * @param fatalErrors handles errors of the backend after which the process may not be able to serve
     * @return the result of the check; only this class completes it
     */
    CompletableFuture<Readiness> begin(LongSupplier nanoTime, Timer timer, FatalErrorHandler fatalErrors) {
        CompletableFuture<Readiness> begun = new CompletableFuture<>();
        CompletableFuture<Readiness> present = state.updateAndGet(
                        now -> now.running() == null ? new State(begun, now.last()) : now)
                .running();
        if (present != null && !isSame(present, begun)) {
            return present;
        }
        try {
            CompletionStage<Void> _ = check.get().whenComplete((_, failure) -> end(begun, failure, fatalErrors));
            if (!begun.isDone()) {
                limit(begun, nanoTime.getAsLong(), timer);
            }
        } catch (Throwable e) { // of a backend
            end(begun, e, fatalErrors);
        }
        return begun;
    }

    private void limit(CompletableFuture<Readiness> begun, long now, Timer timer) {
        Timeout timeout = timer.newTimeout(() -> late(
                begun,
                Readiness.notReady(
                        ErrorCode.UNAVAILABLE,
                        "instance '" + instance + "' has not ended its readiness check within "
                                + TimeUnit.NANOSECONDS.toSeconds(LIMIT_NANOS) + " s")));
        CompletableFuture<Readiness> _ = begun.whenComplete((_, _) -> timeout.close());
        timeout.scheduleAtLatest(now + LIMIT_NANOS);
    }

    /** Completes a check that takes too long, unless it has ended: the result of its end stays. */
    private void late(CompletableFuture<Readiness> begun, Readiness result) {
        state.updateAndGet(now -> isSame(begun, now.running()) ? new State(begun, result) : now);
        begun.complete(result);
    }

    private void end(CompletableFuture<Readiness> begun, @Nullable Throwable failure, FatalErrorHandler fatalErrors) {
        fatalErrors.check(failure);
        Readiness result = failure == null ? Readiness.READY : notReady(failure);
        // First: one that asks after the result begins another check.
        state.updateAndGet(now -> new State(isSame(begun, now.running()) ? null : now.running(), result));
        begun.complete(result);
    }

    /** Compares checks, which are equal only to themselves. */
    @SuppressWarnings("ReferenceEquality")
    private static boolean isSame(Object first, @Nullable Object second) {
        return first == second;
    }

    private Readiness notReady(Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        if (cause instanceof BackendException known) {
            return Readiness.notReady(known.code(), String.valueOf(known.getMessage()));
        }
        log.accept(cause);
        return Readiness.notReady(
                ErrorCode.INTERNAL, "readiness check of instance '" + instance + "' failed: " + cause.getMessage());
    }
}
