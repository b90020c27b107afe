package dev.nereid.http;

import java.util.ArrayDeque;
import java.util.Queue;

/**
 * The steps of one answer, in order: short ones of the event loop, and long ones of a worker, which nobody waits for but
 * the steps after them. Confined to the event loop, but for {@link #add}.
 */
final class AnswerSteps {
    private final EventLoop loop;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private boolean isElsewhere;

    /** Creates the steps of an answer that is given by an event loop. */
    AnswerSteps(EventLoop loop) {
        this.loop = loop;
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
                step.run();
            }
        });
    }

    /**
     * Has a worker do something, and then the event loop; to be the last thing that a step does. If there are no workers
     * any more, the event loop does all.
     */
    void doElsewhere(Runnable work, Runnable then) {
        isElsewhere = true;
        boolean begun = loop.runElsewhere(() -> {
            work.run();
            if (!loop.run(() -> goOn(then))) {
                // No event loop is there to disagree; the steps see that the connection is gone.
                goOn(then);
            }
        });
        if (!begun) {
            work.run();
            goOn(then);
        }
    }

    private void goOn(Runnable then) {
        isElsewhere = false;
        then.run();
        while (!isElsewhere && !waiting.isEmpty()) {
            waiting.remove().run();
        }
    }
}
