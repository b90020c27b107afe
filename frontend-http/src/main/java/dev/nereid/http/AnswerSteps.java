package dev.nereid.http;

import java.util.ArrayDeque;
import java.util.Queue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The steps of one answer, in order: short ones of the event loop, and long ones of a worker, which nobody waits for but
 * the steps after them. Confined to the event loop, but for {@link #add}.
 *
 * <p>A step that throws ends the answer. Those after it have their turns all the same, to give back what they hold.
 */
final class AnswerSteps {
    private static final Logger log = LoggerFactory.getLogger(AnswerSteps.class);

    private final EventLoop loop;
    private final Runnable breakOff;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private boolean isElsewhere;

    /**
     * Creates the steps of an answer that is given by an event loop.
     *
     * @param loop the event loop
     * @param breakOff ends the answer, unless it has ended; run by the event loop after a step that threw something
     */
    AnswerSteps(EventLoop loop, Runnable breakOff) {
        this.loop = loop;
        this.breakOff = breakOff;
    }

    /**
     * Adds a step of the event loop. May be called on any thread.
     *
     * @return {@code false} if the event loop has stopped, and all connections with it
     */
    boolean add(Runnable step) {
        return loop.run(() -> {
            if (isElsewhere) {
                waiting.add(step);
            } else {
                run(step);
            }
        });
    }

    /**
     * Has a worker do something, and then the event loop; to be the last thing that a step does. If there are no workers
     * any more, the event loop does all. What follows has its turn also after work that throws something.
     */
    void doElsewhere(Runnable work, Runnable then) {
        isElsewhere = true;
        boolean begun = loop.runElsewhere(() -> workAndGoOn(work, then));
        if (!begun) {
            try {
                work.run();
            } finally {
                goOn(then);
            }
        }
    }

    /** Works, on a worker, and hands over to the event loop. */
    private void workAndGoOn(Runnable work, Runnable then) {
        try {
            work.run();
        } finally {
            if (!loop.run(() -> goOn(then))) {
                // No event loop is there to disagree; the steps see that the connection is gone.
                goOn(then);
            }
        }
    }

    private void goOn(Runnable then) {
        isElsewhere = false;
        run(then);
        while (!isElsewhere && !waiting.isEmpty()) {
            run(waiting.remove());
        }
    }

    private void run(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException | Error e) {
            log.atError().setCause(e).log("response not written");
            breakOff();
        }
    }

    private void breakOff() {
        try {
            breakOff.run();
        } catch (RuntimeException | Error e) {
            log.atError().setCause(e).log("response not broken off");
        }
    }
}
