package dev.nereid.server.demand;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Serializes access to the planning of memory. Safe for use by any thread; waits no longer than another thread changes
 * or reads tables.
 */
final class MemoryPlanner {
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Planning planning;

    /** Creates a planner without models. Together they may take the bytes of the budget. */
    MemoryPlanner(long budget) {
        planning = new Planning(budget);
    }

    /** Reports something. The action only calls the planning. */
    void report(Consumer<Planning> action) {
        lock.lock();
        try {
            action.accept(planning);
        } finally {
            lock.unlock();
        }
    }

    /** Reads or decides something. The question only calls the planning. */
    <T> T ask(Function<Planning, T> question) {
        lock.lock();
        try {
            return question.apply(planning);
        } finally {
            lock.unlock();
        }
    }
}
