package dev.nereid.http.generate;

import dev.nereid.http.body.EventLoopExecutor;
import java.util.ArrayDeque;
import java.util.Queue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the tasks of one response in order, on event loop and workers. Confined to the event loop, but for {@link
 * #add}.
 *
 * <p>A step that throws ends the answer. Those after it have their turns all the same, to give back what they hold.
 */
final class ResponseTaskQueue {
    private static final Logger log = LoggerFactory.getLogger(ResponseTaskQueue.class);

    private final EventLoopExecutor loop;
    private final Runnable abort;
    private final Queue<Runnable> pending = new ArrayDeque<>();
    private boolean isOnWorker;

    /**
     * Creates the steps of an answer that is given by an event loop.
     *
     * @param loop the event loop
     * @param breakOff ends the answer, unless it has ended; run by the event loop after a step that threw something
     */
    ResponseTaskQueue(EventLoopExecutor loop, Runnable breakOff) {
        this.loop = loop;
        this.abort = breakOff;
    }

    /**
     * Adds a step of the event loop. May be called on any thread.
     *
     * @return {@code false} if the event loop has stopped, and all connections with it
     */
    boolean add(Runnable step) {
        return loop.execute(() -> {
            if (isOnWorker) {
                pending.add(step);
            } else {
                run(step);
            }
        });
    }

    /**
     * Has a worker do something, and then the event loop; to be the last thing that a step does. If there are no workers
     * any more, the event loop does all. What follows has its turn also after work that throws something.
     */
    void runOnWorker(Runnable work, Runnable then) {
        isOnWorker = true;
        boolean begun = loop.executeOnWorker(() -> workThenResume(work, then));
        if (!begun) {
            try {
                work.run();
            } finally {
                resume(then);
            }
        }
    }

    /** Works, on a worker, and hands over to the event loop. */
    private void workThenResume(Runnable work, Runnable then) {
        try {
            work.run();
        } finally {
            if (!loop.execute(() -> resume(then))) {
                // No event loop is there to disagree; the steps see that the connection is gone.
                resume(then);
            }
        }
    }

    private void resume(Runnable then) {
        isOnWorker = false;
        run(then);
        while (!isOnWorker && !pending.isEmpty()) {
            run(pending.remove());
        }
    }

    private void run(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error e) {
            log.atError().setCause(e).log("response not written");
            abort();
        }
    }

    private void abort() {
        try {
            abort.run();
        } catch (RuntimeException | Error e) {
            log.atError().setCause(e).log("response not broken off");
        }
    }
}
