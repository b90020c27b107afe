package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Waits of loads, during which other loads go on. Safe for use by any thread. */
@FunctionalInterface
public interface LoadWaits {
    /**
     * Waits for the end of a stage. A load on the calling thread needs its permit no more meanwhile.
     *
     * @param stage the stage
     * @param limit how long to wait
     * @return whether the stage has ended, also by a failure
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if the server stops
     * @throws InterruptedException if the thread is interrupted
     */
    boolean await(CompletableFuture<?> stage, Duration limit) throws InterruptedException;
}
