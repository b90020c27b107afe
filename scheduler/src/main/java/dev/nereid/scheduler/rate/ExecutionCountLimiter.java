package dev.nereid.scheduler.rate;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.Device;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Grants permits to the instances with the fewest executions, within the resource limits. Guarded by its lock; whoever
 * is granted a turn is told outside of it.
 *
 * <p>The instances that have work wait in one order: first who has had least, each execution counted as often as the
 * priority says; among equals, the one of the higher priority, which is the lower number; then the one that has waited
 * longest. Only the first of them is tried. While there is not enough for it all others wait too, also those for which
 * there would be enough: it would never be its turn otherwise.
 */
public final class ExecutionCountLimiter implements RateLimiter {
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final ResourcePool pool;

    @GuardedBy("lock")
    private final PriorityQueue<Instance> staged = new PriorityQueue<>(Comparator.<Instance>comparingLong(i -> i.load)
            .thenComparingInt(i -> i.priority)
            .thenComparingLong(i -> i.order));

    /** How many instances were staged so far. */
    @GuardedBy("lock")
    private long stagings;

    /**
     * Begins without instances.
     *
     * @param limits how much there is of what; of everything else there is as much as the instance takes that takes the
     *     most
     */
    public ExecutionCountLimiter(List<ResourceLimit> limits) {
        pool = new ResourcePool(limits);
    }

    @Override
    public boolean isLimiting() {
        return true;
    }

    @Override
    public RateLimitRegistration register(Device device, RateProfile profile) {
        Instance instance = new Instance(ResourceNeed.of(device, profile), Math.max(1, profile.priority()));
        List<Runnable> grants;
        lock.lock();
        try {
            pool.add(instance.need);
            grants = allocate(); // there may be more of a resource now
        } finally {
            lock.unlock();
        }
        grants.forEach(Runnable::run);
        return instance;
    }

    /**
     * Counts the instances that wait for their turn.
     *
     * @return the number at this moment
     */
    public int waiting() {
        lock.lock();
        try {
            return staged.size();
        } finally {
            lock.unlock();
        }
    }

    /** Lets an instance compete. */
    @GuardedBy("lock")
    private void enter(Instance instance, Runnable granted) {
        instance.state = State.STAGED;
        instance.granted = granted;
        instance.order = stagings++;
        staged.add(instance);
    }

    /** Takes an instance out that has nothing any more. */
    @GuardedBy("lock")
    private void deregister(Instance instance) {
        instance.state = State.CLOSED;
        pool.remove(instance.need);
    }

    /**
     * Gives turns to whoever comes first, until there is not enough for one; the caller tells them, outside the lock.
     */
    @GuardedBy("lock")
    private List<Runnable> allocate() {
        List<Runnable> grants = new ArrayList<>(1);
        for (Instance head = staged.peek(); head != null && pool.fits(head.need); head = staged.peek()) {
            staged.remove();
            pool.take(head.need);
            head.state = State.ALLOCATED;
            Runnable granted = head.granted;
            head.granted = null;
            if (granted != null) {
                grants.add(granted);
            }
        }
        return grants;
    }

    /** The state of an instance. */
    private enum State {
        /** It has asked for nothing. */
        AVAILABLE,
        /** It waits for its turn. */
        STAGED,
        /** It has its resources. */
        ALLOCATED,
        /** It is forgotten. */
        CLOSED
    }

    /** A registered instance. Guarded by the lock of the limiter, but for {@code load}, which any thread may read. */
    private final class Instance implements RateLimitRegistration {
        private final ResourceNeed need;
        private final int priority;
        private State state = State.AVAILABLE;
        private long executions;
        private long order;
        private boolean closing;

        /** Changed while the instance is not staged. */
        private volatile long load;

        /** Who is told of the next turn, if one was asked for. */
        private @Nullable Runnable granted;

        Instance(ResourceNeed need, int priority) {
            this.need = need;
            this.priority = priority;
        }

        @Override
        public boolean isLimited() {
            return true;
        }

        @Override
        public long load() {
            return load;
        }

        @Override
        public void stage(Runnable grant) {
            List<Runnable> grants = List.of();
            lock.lock();
            try {
                if (closing || granted != null) {
                    throw new IllegalStateException(
                            closing ? "stage: the ticket is closed" : "stage: called again before the turn came");
                }
                if (state == State.ALLOCATED) {
                    granted = grant;
                } else {
                    enter(this, grant);
                    grants = allocate();
                }
            } finally {
                lock.unlock();
            }
            grants.forEach(Runnable::run);
        }

        @Override
        public void release() {
            end(1);
        }

        @Override
        public void releaseUnused() {
            end(0);
        }

        private void end(int executed) {
            List<Runnable> grants;
            lock.lock();
            try {
                if (state != State.ALLOCATED) {
                    throw new IllegalStateException("release: " + state + " (expected: " + State.ALLOCATED + ")");
                }
                executions += executed;
                load = executions > Long.MAX_VALUE / priority ? Long.MAX_VALUE : executions * priority;
                pool.release(need);
                Runnable next = granted;
                if (closing) {
                    deregister(this);
                } else if (next != null) {
                    enter(this, next);
                } else {
                    state = State.AVAILABLE;
                }
                grants = allocate();
            } finally {
                lock.unlock();
            }
            grants.forEach(Runnable::run);
        }

        @Override
        public void close() {
            List<Runnable> grants = List.of();
            lock.lock();
            try {
                if (!closing) {
                    closing = true;
                    granted = null;
                    if (state != State.ALLOCATED) {
                        staged.remove(this);
                        deregister(this);
                        grants = allocate();
                    }
                }
            } finally {
                lock.unlock();
            }
            grants.forEach(Runnable::run);
        }
    }
}
