package dev.nereid.scheduler.rate;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.Device;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.PriorityQueue;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Grants permits to the instances with the fewest executions, within the resource limits. Guarded by its lock; grants
 * run outside of it.
 *
 * <p>Staged instances wait in one order: by load, which is the executions times the priority; then by priority, the
 * lower number first; then by waiting time. Only the first instance is tried. While its resources are not available all
 * others wait too, even if their resources are: otherwise the first one might never be granted a permit.
 */
public final class RateLimiter implements ExecutionLimiter {
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final ResourcePool pool;

    @GuardedBy("lock")
    private final PriorityQueue<Instance> staged = new PriorityQueue<>(Comparator.<Instance>comparingLong(i -> i.load)
            .thenComparingInt(i -> i.priority)
            .thenComparingLong(i -> i.order));

    /** The number of stagings so far. */
    @GuardedBy("lock")
    private long stagings;

    /** Creates a limiter without instances. The capacity of an unlimited resource is the maximum of one instance. */
    public RateLimiter(List<ResourceLimit> limits) {
        pool = new ResourcePool(limits);
    }

    @Override
    public boolean isLimiting() {
        return true;
    }

    @Override
    public RateLimitRegistration register(Device device, RateProfile profile) {
        Instance instance = new Instance(ResourcePool.Need.of(device, profile), Math.max(1, profile.priority()));
        List<Runnable> grants;
        lock.lock();
        try {
            pool.add(instance.need);
            grants = allocate(); // the capacity of a resource may have grown
        } finally {
            lock.unlock();
        }
        grants.forEach(Runnable::run);
        return instance;
    }

    /** Returns the number of instances that wait for a permit. */
    public int waiting() {
        lock.lock();
        try {
            return staged.size();
        } finally {
            lock.unlock();
        }
    }

    /** Stages an instance. */
    @GuardedBy("lock")
    private void enter(Instance instance, Runnable granted) {
        instance.state = State.STAGED;
        instance.granted = granted;
        instance.order = stagings++;
        staged.add(instance);
    }

    /** Deregisters an instance that holds no resources. */
    @GuardedBy("lock")
    private void deregister(Instance instance) {
        instance.state = State.CLOSED;
        pool.remove(instance.need);
    }

    /** Grants permits in order while resources are available. The caller runs the grants outside of the lock. */
    @GuardedBy("lock")
    private List<Runnable> allocate() {
        List<Runnable> grants = new ArrayList<>(1);
        for (Instance first = staged.peek(); first != null && pool.fits(first.need); first = staged.peek()) {
            staged.remove();
            pool.take(first.need);
            first.state = State.ALLOCATED;
            Runnable granted = first.granted;
            first.granted = null;
            if (granted != null) {
                grants.add(granted);
            }
        }
        return grants;
    }

    /** The state of an instance. */
    private enum State {
        /** It has requested no permit. */
        AVAILABLE,
        /** It waits for a permit. */
        STAGED,
        /** It holds its resources. */
        ALLOCATED,
        /** It is deregistered. */
        CLOSED
    }

    /** A registered instance. Guarded by the limiter's lock, except for {@code load}, which any thread may read. */
    private final class Instance implements RateLimitRegistration {
        private final ResourcePool.Need need;
        private final int priority;
        private State state = State.AVAILABLE;
        private long executions;
        private long order;
        private boolean closing;

        /** Changed while the instance is not staged. */
        private volatile long load;

        /** Runs at the next grant; {@code null} if no permit is requested. */
        private @Nullable Runnable granted;

        Instance(ResourcePool.Need need, int priority) {
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
                            closing
                                    ? "stage: the registration is closed"
                                    : "stage: called again before the permit was granted");
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

    /**
     * The available amount of a resource. Immutable.
     *
     * @param name the resource's name, as in model configurations
     * @param count the capacity; 0 or more
     * @param device the number of the device; empty for each device. The capacity of a global resource is the largest of
     *     its limits on any device
     */
    public record ResourceLimit(String name, int count, OptionalInt device) {
        public ResourceLimit {
            requireNonNull(name, "name");
            requireNonNull(device, "device");
            if (name.isEmpty()) {
                throw new IllegalArgumentException("name: empty (expected: the name of a resource)");
            }
            if (count < 0) {
                throw new IllegalArgumentException("count: " + count + " (expected: >= 0)");
            }
            if (device.isPresent() && device.getAsInt() < 0) {
                throw new IllegalArgumentException("device: " + device.getAsInt() + " (expected: >= 0)");
            }
        }
    }
}
