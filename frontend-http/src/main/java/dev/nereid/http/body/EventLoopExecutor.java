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
    private static final Logger LOG = LoggerFactory.getLogger(EventLoopExecutor.class);

    private final Context context;

    public EventLoopExecutor(Context context) {
        this.context = context;
    }

    /** Runs a task on the event loop after earlier ones; {@code false} if the loop and its connections have stopped. */
    public boolean execute(Runnable task) {
        try {
            context.runOnContext(now -> task.run());
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }

    /**
     * Runs a task on the event loop after it has polled its sockets. A task that resubmits itself by {@link #execute}
     * may delay them for up to a second.
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
     * Runs a task on a worker thread that would block the event loop; {@code false} if the workers have stopped. Its
     * end is not reported: the task continues on the event loop by {@link #execute}.
     */
    public boolean executeOnWorker(Runnable task) {
        try {
            context.executeBlocking(
                            () -> {
                                task.run();
                                return true;
                            },
                            false)
                    .onFailure(e -> LOG.atError().setCause(e).log("worker task failed"));
            return true;
        } catch (RejectedExecutionException e) {
            return false;
        }
    }
}
