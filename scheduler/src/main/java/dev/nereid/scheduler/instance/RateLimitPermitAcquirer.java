package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.WorkSource;
import dev.nereid.scheduler.rate.RateLimitPermits;
import org.jspecify.annotations.Nullable;

/** Acquires a rate limiter permit for each batch of a worker. Confined to the thread that runs the instances. */
final class RateLimitPermitAcquirer {
    private final DeviceInstances instances;
    private final WorkSource source;

    /** The batch that uses the permit; {@code null} before {@link #use} and after {@link #end}. */
    private @Nullable ExecutionBatch used;

    /** Creates an acquirer without a permit. */
    RateLimitPermitAcquirer(DeviceInstances instances, WorkSource source) {
        this.instances = instances;
        this.source = source;
    }

    /** Waits for a batch, and then for a permit; returns {@code false} if the instance has no more work, ever. */
    boolean await(InstanceHandle handle) {
        if (!instances.permits().isRequested() && !source.awaitWork(handle)) {
            return false;
        }
        return request().await();
    }

    /** Requests a permit if there is a batch, and returns whether it is granted. A granted permit is used. */
    boolean tryBegin(InstanceHandle handle) {
        if (!instances.permits().isRequested() && !source.hasWork(handle)) {
            return false;
        }
        return request().tryBegin();
    }

    /** Requests a permit for the next instance that takes batches, unless one is requested. */
    private RateLimitPermits request() {
        if (!instances.permits().isRequested()) {
            instances.skipUnavailable();
        }
        RateLimitPermits permits = instances.permits();
        permits.request();
        return permits;
    }

    void use(ExecutionBatch batch) {
        used = batch;
    }

    /** Returns whether the permit was used, and there is a batch for another one. */
    boolean isWorthAnother(InstanceHandle handle) {
        return used != null && source.hasWork(handle);
    }

    /**
     * Releases a permit. An unused permit is released at once, another one at the end of its execution.
     *
     * @param permits the permits of the instance that ran
     * @param more whether to request another one before
     */
    void end(RateLimitPermits permits, boolean more) {
        ExecutionBatch batch = used;
        used = null;
        if (more) {
            request();
        }
        if (batch == null) {
            permits.releaseUnused();
        } else {
            batch.onEnd(permits::release);
        }
    }
}
