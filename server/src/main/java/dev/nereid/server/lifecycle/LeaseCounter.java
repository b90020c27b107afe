package dev.nereid.server.lifecycle;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Counts the leases on a resource. Runs an action when the resource is closed and the last lease is released.
 * Lock-free; a lease may be released by any thread.
 *
 * <p>The count is spread over several stripes, so that threads which acquire and release at the same time do not write
 * the same cache line. A thread always uses the same stripe, so a stripe alone may be negative: only the sum counts. The
 * lowest bit of each stripe says that it is closed. Once all stripes are closed no lease can be acquired, and each stripe
 * changes by releases alone: a sum of 0 that is read stripe by stripe is then the sum at the end of the reading. The
 * thread of the last release sees all other releases, since stripes are read and written with volatile access.
 */
final class LeaseCounter {
    private static final VarHandle STRIPES = MethodHandles.arrayElementVarHandle(long[].class);

    /** Longs from one stripe to the next: two cache lines, which processors fetch together. */
    private static final int DISTANCE = 16;

    /** More than one, so that two threads rarely have the same, which costs each of them some 40 ns. */
    private static final int STRIPES_PER_PROCESSOR = 4;

    private static final int MAX_STRIPES = 64;
    private static final int MIN_STRIPES = 8;
    private static final long CLOSED = 1;
    private static final long LEASE = 2;

    /** Spreads thread numbers that follow each other, or differ by the number of stripes. */
    private static final long MIXER = 0x9E3779B97F4A7C15L;

    private final long[] stripes;

    /** Leaves as many of the highest bits of a mixed thread number as a stripe's number has. */
    private final int shift;

    private final AtomicReference<@Nullable Runnable> whenReleased = new AtomicReference<>();

    /** Creates an open counter without leases for the processors of this machine. */
    LeaseCounter() {
        this(Runtime.getRuntime().availableProcessors());
    }

    /** Creates an open counter without leases, for so many threads at the same time. */
    LeaseCounter(int processors) {
        int atLeast = STRIPES_PER_PROCESSOR * Math.clamp(processors, 1, MAX_STRIPES);
        int count = Math.clamp(Integer.highestOneBit(atLeast * 2 - 1), MIN_STRIPES, MAX_STRIPES);
        stripes = new long[(count + 1) * DISTANCE];
        shift = Long.SIZE - Integer.numberOfTrailingZeros(count);
    }

    /** Acquires a lease, to be released by the caller, unless the counter is closed; returns whether it did. */
    boolean acquire() {
        int stripe = stripe();
        while (true) {
            long seen = (long) STRIPES.getVolatile(stripes, stripe);
            if ((seen & CLOSED) != 0) {
                return false;
            }
            if (STRIPES.weakCompareAndSet(stripes, stripe, seen, seen + LEASE)) {
                return true;
            }
        }
    }

    /** Releases a lease. The last release after {@link #close} runs its action. */
    void release() {
        long before = (long) STRIPES.getAndAdd(stripes, stripe(), -LEASE);
        if ((before & CLOSED) != 0) {
            runIfReleased();
        }
    }

    /**
     * Refuses leases from now on. Called once.
     *
     * @param action runs once, when no lease is left: on this thread, or on the one that releases the last
     */
    void close(Runnable action) {
        whenReleased.set(action);
        for (int i = DISTANCE; i < stripes.length; i += DISTANCE) {
            STRIPES.getAndBitwiseOr(stripes, i, CLOSED);
        }
        runIfReleased();
    }

    /**
     * Refuses leases for the moment. Not called after {@link #close}; {@link #resume} or {@link #close} follows.
     *
     * @return whether there is no lease, so that there is none until then
     */
    boolean suspend() {
        for (int i = DISTANCE; i < stripes.length; i += DISTANCE) {
            STRIPES.getAndBitwiseOr(stripes, i, CLOSED);
        }
        return isReleased();
    }

    /** Gives leases again, after {@link #suspend}. */
    void resume() {
        for (int i = DISTANCE; i < stripes.length; i += DISTANCE) {
            STRIPES.getAndBitwiseAnd(stripes, i, ~CLOSED);
        }
    }

    /** Returns whether all stripes are closed, and no lease is left. */
    private boolean isReleased() {
        long sum = 0;
        for (int i = DISTANCE; i < stripes.length; i += DISTANCE) {
            long stripe = (long) STRIPES.getVolatile(stripes, i);
            if ((stripe & CLOSED) == 0) {
                return false; // close has not come so far, and checks again when it has
            }
            sum += stripe >> 1;
        }
        return sum == 0;
    }

    private void runIfReleased() {
        if (isReleased()) {
            Runnable action = whenReleased.getAndSet(null);
            if (action != null) {
                action.run();
            }
        }
    }

    private int stripe() {
        return stripe(Thread.currentThread().threadId());
    }

    /** Returns the index of the stripe of a thread. */
    int stripe(long thread) {
        long mixed = thread * MIXER;
        return ((int) (mixed >>> shift) + 1) * DISTANCE;
    }
}
