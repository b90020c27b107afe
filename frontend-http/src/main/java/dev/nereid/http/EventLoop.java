package dev.nereid.http;

import io.vertx.core.Context;
import java.util.concurrent.RejectedExecutionException;

/** An event loop, as those see it that hand over to it. Immutable. */
final class EventLoop {
    private final Context context;

    /**
     * Takes an event loop.
     *
     * @param context its context
     */
    EventLoop(Context context) {
        this.context = context;
    }

    /**
     * Has the event loop do something, after everything that it was told before.
     *
     * @return {@code false} if the event loop has stopped, and all connections with it
     */
    boolean run(Runnable task) {
        try {
            context.runOnContext(now -> task.run());
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }
}
