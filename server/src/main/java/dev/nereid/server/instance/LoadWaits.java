package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits of loads, during which other loads go on. Safe for use by any thread. */
@FunctionalInterface
public interface LoadWaits {
    /** How long one of several waits for a stage without a limit takes. */
    Duration INTERVAL = Duration.ofHours(1);

    /** Waits of threads that perform no load of a server. */
    LoadWaits PLAIN = (stage, limit) -> {
        try {
            stage.get(limit.toNanos(), TimeUnit.NANOSECONDS);
            return true;
        } catch (ExecutionException | CancellationException | TimeoutException e) {
            return stage.isDone();
        }
    };

    /**
     * Waits for the end of a stage. A load on the calling thread needs its permit no more meanwhile.
     *
     * @param limit how long to wait
     * @return whether the stage has ended, also by a failure
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if the server stops
     */
    boolean await(CompletableFuture<?> stage, Duration limit) throws InterruptedException;

    /**
     * Waits for the end of a stage, as {@link #await}, however long that takes. If the wait ends before, the stage is
     * cancelled.
     *
     * @param what names the wait in the error
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if the server stops, or the thread is interrupted
     */
    default void awaitEnd(CompletableFuture<?> stage, String what) {
        try {
            boolean ended = false;
            while (!ended) {
                ended = await(stage, INTERVAL);
            }
        } catch (InferenceException e) {
            stage.cancel(false);
            throw e;
        } catch (InterruptedException e) {
            stage.cancel(false);
            Thread.currentThread().interrupt();
            throw new InferenceException(ErrorCode.UNAVAILABLE, "load interrupted during " + what);
        }
    }
}
