package dev.nereid.scheduler.instance;

import dev.nereid.scheduler.batch.ExecutionBatch;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.rate.RateLimitPermits;
import org.jspecify.annotations.Nullable;

/** Acquires a rate limiter permit for each batch of a worker. Confined to the thread that runs the instances. */
final class RateLimitPermitAcquirer {
    private final DeviceInstances instances;
    private final BatchSource source;

    /** For what the turn was used, until the turn is ended. */
    private @Nullable ExecutionBatch used;

    /**
     * Begins without a turn.
     *
     * @param instances whose turns are taken
     * @param source where there is work, or not
     */
    RateLimitPermitAcquirer(DeviceInstances instances, BatchSource source) {
        this.instances = instances;
        this.source = source;
    }

    /**
     * Waits for work, and then for the turn to do it.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    boolean await(InstanceHandle seat) {
        RateLimitPermits turns = instances.permits();
        if (!turns.isRequested() && !source.awaitWork(seat)) {
            return false;
        }
        turns.request();
        return turns.await();
    }

    /** Asks for a turn if there is work, and begins it if it has come. */
    boolean tryBegin() {
        RateLimitPermits turns = instances.permits();
        if (!turns.isRequested() && !source.hasWork()) {
            return false;
        }
        turns.request();
        return turns.tryBegin();
    }

    /** Takes note that the turn is used. */
    void use(ExecutionBatch batch) {
        used = batch;
    }

    /** Says whether the turn was used, and there is work for another one. */
    boolean isWorthAnother() {
        return used != null && source.hasWork();
    }

    /**
     * Ends a turn, or leaves that to the end of the execution for which it was used.
     *
     * @param turns of whom the turn was
     * @param more whether to ask for another one before
     */
    void end(RateLimitPermits turns, boolean more) {
        ExecutionBatch batch = used;
        used = null;
        if (more) {
            instances.permits().request();
        }
        if (batch == null) {
            turns.releaseUnused();
        } else {
            batch.onEnd(turns::release);
        }
    }
}
