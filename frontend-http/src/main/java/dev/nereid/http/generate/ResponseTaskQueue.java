package dev.nereid.http.generate;

import dev.nereid.http.body.EventLoopExecutor;
import java.util.ArrayDeque;
import java.util.Queue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the tasks of one response in order, on event loop and workers. Confined to the event loop, but for {@link #add}.
 *
 * <p>A task that throws aborts the response. Later tasks run nevertheless, to release what they hold.
 */
final class ResponseTaskQueue {
    private static final Logger LOG = LoggerFactory.getLogger(ResponseTaskQueue.class);

    private final EventLoopExecutor loop;
    private final Runnable abort;
    private final Queue<Runnable> pending = new ArrayDeque<>();
    private boolean isOnWorker;

    /** Creates the queue. After a task that threw, the event loop runs {@code abort}, which ends an open response. */
    ResponseTaskQueue(EventLoopExecutor loop, Runnable abort) {
        this.loop = loop;
        this.abort = abort;
    }

    /** Adds a task of the event loop, on any thread; {@code false} if the loop and its connections have stopped. */
    boolean add(Runnable task) {
        return loop.execute(() -> {
            if (isOnWorker) {
                pending.add(task);
            } else {
                run(task);
            }
        });
    }

    /**
     * Runs work on a worker, and then a task on the event loop. It has to be the last action of a task. If the workers
     * have stopped, the event loop runs both. {@code next} runs also if the work throws.
     */
    void runOnWorker(Runnable work, Runnable next) {
        isOnWorker = true;
        boolean submitted = loop.executeOnWorker(() -> workThenResume(work, next));
        if (!submitted) {
            try {
                work.run();
            } finally {
                resume(next);
            }
        }
    }

    /** Runs the work on a worker, and returns to the event loop. */
    private void workThenResume(Runnable work, Runnable next) {
        try {
            work.run();
        } finally {
            if (!loop.execute(() -> resume(next))) {
                // The event loop has ended: no other thread runs tasks, which see that the connection is gone.
                resume(next);
            }
        }
    }

    private void resume(Runnable next) {
        isOnWorker = false;
        run(next);
        while (!isOnWorker && !pending.isEmpty()) {
            run(pending.remove());
        }
    }

    private void run(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            LOG.atError().setCause(e).log("response not written");
            abort();
        }
    }

    private void abort() {
        try {
            abort.run();
        } catch (RuntimeException | Error e) {
            LOG.atError().setCause(e).log("response not aborted");
        }
    }
}
