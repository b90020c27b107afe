package dev.nereid.server.repository;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * What a load that fails must take back. Confined to the thread that loads.
 *
 * <p>Used in a {@code try} block: unless {@link #keep} was called, its end runs the steps, the last added first.
 */
final class Undo implements AutoCloseable {
    private final Deque<Runnable> steps = new ArrayDeque<>();

    /** Adds a step, which must not throw. */
    void add(Runnable step) {
        steps.push(step);
    }

    /** Forgets every step: whoever has the result now closes it. */
    void keep() {
        steps.clear();
    }

    @Override
    public void close() {
        while (!steps.isEmpty()) {
            steps.pop().run();
        }
    }
}
