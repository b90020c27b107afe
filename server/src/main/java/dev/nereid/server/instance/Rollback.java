package dev.nereid.server.instance;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Rollback of a failed load. Confined to the thread that loads.
 *
 * <p>Used in a {@code try} block: unless {@link #commit} was called, its end runs the steps, the last added first.
 */
public final class Rollback implements AutoCloseable {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    /** Adds a step, which must not throw. */
    public void add(Runnable step) {
        steps.push(step);
    }

    /** Removes every step: the owner of the result closes it from now on. */
    public void commit() {
        steps.clear();
    }

    @Override
    public void close() {
        while (!steps.isEmpty()) {
            steps.pop().run();
        }
    }
}
