package dev.nereid.http.body;

import io.vertx.core.Context;
import io.vertx.core.internal.ContextInternal;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs tasks on an event loop or worker pool. Immutable. */
public final class EventLoopExecutor {
    private static final Logger log = LoggerFactory.getLogger(EventLoopExecutor.class);

    private final Context context;

    /**
     * Takes an event loop.
     *
     * @param context its context
     */
    public EventLoopExecutor(Context context) {
        this.context = context;
    }

    /**
     * Has the event loop do something, after everything that it was told before.
     *
     * @return {@code false} if the event loop has stopped, and all connections with it
     */
    public boolean execute(Runnable task) {
        try {
            context.runOnContext(now -> task.run());
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /**
     * Has the event loop do something after it has looked at its sockets: a task that is run anew each time goes before
     * them, for up to a second.
     *
     * @return {@code false} if the event loop has stopped, and all connections with it
     */
    public boolean executeAfterIo(Runnable task) {
        try {
            Future<?> _ =
                    ((ContextInternal) context).nettyEventLoop().schedule(() -> execute(task), 1, TimeUnit.NANOSECONDS);
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /**
     * Has a worker do what would hold the event loop up. Nothing is told of its end: it hands over by {@link #execute}.
     *
     * @return {@code false} if the workers have stopped
     */
    public boolean executeOnWorker(Runnable task) {
        try {
            context.executeBlocking(
                            () -> {
                                task.run();
                                return true;
                            },
                            false)
                    .onFailure(e -> log.atError().setCause(e).log("work not done"));
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }
}
