package dev.nereid.scheduler.request;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.Device;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Counts requests in flight, of a model or instance, and awaits their end. Safe for use by any thread.
 *
 * <p>The count is an atomic number, since it changes twice with every request; only a waiting thread, and requests that
 * end during a wait, take the lock. No wake-up is lost: the waiting thread sets {@code awaited} before it reads the
 * count, a request that ends reads {@code awaited} after it wrote the count, so at least one of the two sees the other.
 * Requests that arrive after the stop of the model are counted for a moment; that is harmless, for they complete
 * without an instance.
 */
public final class RequestDrain {
    private final String name;
    private final Device device;
    private final AtomicInteger count = new AtomicInteger();
    private final LongAdder responses = new LongAdder();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Condition none = lock.newCondition();

    private volatile boolean awaited;

    /** Creates a count without a name. */
    public RequestDrain() {
        this("", Device.CPU);
    }

    /** Creates a count of the requests that use an instance; its name is empty for none. */
    public RequestDrain(String name, Device device) {
        this.name = name;
        this.device = device;
    }

    Device device() {
        return device;
    }

    /** Returns the name of the instance that the requests use; empty for none. */
    String name() {
        return name;
    }

    public void register() {
        count.incrementAndGet();
    }

    public void register(int number) {
        count.addAndGet(number);
    }

    /** Counts a request that ends. It is completed, its responses are closed, its memory is released. */
    public void deregister() {
        if (count.decrementAndGet() == 0 && awaited) {
            lock.lock();
            try {
                none.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    public int count() {
        return count.get();
    }

    /** Counts a response, or a lease on one of its outputs, that was made. */
    void opened() {
        responses.increment();
    }

    /** Counts a response, or a lease on one of its outputs, that is closed. */
    void closed() {
        responses.decrement();
    }

    /** Returns the number of open responses and leases on their outputs, which may have changed by the return. */
    public long openResponses() {
        return responses.sum();
    }

    /** Waits until no request is in flight. */
    public void awaitUninterruptibly() {
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

    /** Waits for at most {@code nanos} until no request is in flight; returns whether none is. */
    public boolean await(long nanos) throws InterruptedException {
        awaited = true;
        long remaining = nanos;
        lock.lockInterruptibly();
        try {
            while (count.get() > 0) {
                if (remaining <= 0) {
                    return false;
                }
                remaining = none.awaitNanos(remaining);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }
}
