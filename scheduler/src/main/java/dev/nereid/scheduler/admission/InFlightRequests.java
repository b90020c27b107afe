package dev.nereid.scheduler.admission;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Counts the requests of a model in flight, and awaits their end. Safe for use by any thread.
 *
 * <p>The count is an atomic number, since it changes twice with every call; the lock is touched only by whoever waits
 * and by calls that end while somebody waits. No wake-up is lost: the waiter sets {@code awaited} before it reads the
 * count, a call that ends reads {@code awaited} after it wrote the count, so at least one of the two sees the other.
 * Calls that come after the model stopped taking any pass through the count for a moment; that is harmless, for they
 * are answered without an instance.
 */
public final class InFlightRequests {
    private final AtomicInteger count = new AtomicInteger();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Condition none = lock.newCondition();

    private volatile boolean awaited;

    /** Counts a call that comes. */
    public void enter() {
        count.incrementAndGet();
    }

    /** Counts a call that is done: answered, its responses closed, its memory given back. */
    public void leave() {
        if (count.decrementAndGet() == 0 && awaited) {
            lock.lock();
            try {
                none.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    /** Returns how many calls came and are not done. */
    public int count() {
        return count.get();
    }

    /** Waits until no call is left, whatever interrupts. */
    public void awaitNone() {
        awaited = true;
        lock.lock();
        try {
            while (count.get() > 0) {
                none.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }
}
