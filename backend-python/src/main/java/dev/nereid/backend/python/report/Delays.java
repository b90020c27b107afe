package dev.nereid.backend.python.report;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** Runs actions later. Safe for use by any thread. */
@FunctionalInterface
public interface Delays {
    /** Runs an action after milliseconds. Never blocks. It is lost if its executor is closed or full by then. */
    void run(long millis, Runnable action);

    /** Returns delays that run their actions by an executor. */
    static Delays on(Executor executor) {
        return (millis, action) -> CompletableFuture.delayedExecutor(millis, TimeUnit.MILLISECONDS, executor)
                .execute(action);
    }
}
