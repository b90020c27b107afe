package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.queue.InstanceHandle;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Observes other threads. Static functions only; all waits fail if they take too long. */
public final class Threads {
    private static final long LONGEST = Duration.ofSeconds(30).toNanos();

    private Threads() {}

    /** Returns the thread of a name, which is there. */
    public static Thread named(String name) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    /** Waits until something holds. */
    public static void await(String what, BooleanSupplier holds) {
        long end = System.nanoTime() + LONGEST;
        while (!holds.getAsBoolean()) {
            assertThat(end - System.nanoTime()).as(what).isPositive();
            Thread.onSpinWait();
        }
    }

    /** Waits until a thread sleeps until another one wakes it. */
    public static void awaitAsleep(Thread thread) {
        try {
            await("asleep", () -> thread.getState() == Thread.State.WAITING);
        } catch (AssertionError e) {
            throw new AssertionError(thread + ": " + Arrays.toString(thread.getStackTrace()), e);
        }
    }

    /** Waits until the thread of an instance sleeps at the queue until it is called. */
    public static void awaitIdle(Thread thread) {
        await("idle", () -> LockSupport.getBlocker(thread) instanceof InstanceHandle);
        awaitAsleep(thread);
    }
}
