package dev.nereid.testkit;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs calls one after another, each on a thread that has made one: the second of two that meet runs on the thread of the
 * first, after it. A call from within another one runs after that. Lock-free.
 */
final class CallsInTurn {
    private final Queue<Runnable> waiting = new ConcurrentLinkedQueue<>();

    /** The calls that have not returned. The thread that raises it from 0 runs all of them until it is 0 again. */
    private final AtomicInteger open = new AtomicInteger();

    /** Runs a call now, or leaves it to the thread that runs another one. Its exceptions reach the running thread. */
    void run(Runnable call) {
        waiting.add(call);
        if (open.getAndIncrement() == 0) {
            drain();
        }
    }

    private void drain() {
        boolean more = true;
        while (more) {
            boolean returned = false;
            try {
                waiting.remove().run();
                returned = true;
            } finally {
                more = open.decrementAndGet() > 0;
                if (!returned && more) {
                    drain(); // the others, before the exception goes on
                }
            }
        }
    }
}
