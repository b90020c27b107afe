package dev.nereid.scheduler.queue;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Passes requests that are offered together to an idle instance, without queueing them. Guarded by the lock of the
 * queue.
 *
 * <p>It does so only if the queue would pass the same batch at once: nothing waits, all of the requests make one batch,
 * and none has a deadline, a timeout or a limit of its level. All other requests are left to the queue.
 */
final class UnqueuedBatch implements QueueView {
    private final QueuePolicy policy;
    private final boolean possible;

    private final RequestBatcher batcher;
    private final IdleInstances idleInstances;
    private List<ScheduledRequest> offered = List.of();
    private int index;

    /** Creates the object for one queue. {@code joinsAll} is set if any requests may share a batch. */
    UnqueuedBatch(PriorityPolicy priorities, boolean joinsAll, RequestBatcher batcher, IdleInstances idleInstances) {
        this.policy = priorities.defaultPolicy();
        this.possible = joinsAll && priorities.levels() == 0 && policy.maxQueueSize() == 0;
        this.batcher = batcher;
        this.idleInstances = idleInstances;
    }

    /** Passes requests to an idle instance; returns its handle with the batch, {@code null} to queue them. */
    @Nullable
    InstanceHandle pass(List<ScheduledRequest> requests) {
        if (!possible || !batcher.takesAtOnce() || !idleInstances.mayRunDirectly() || !arePlain(requests)) {
            return null;
        }
        offered = requests;
        try {
            return batcher.plansAll(this, requests.size()) ? acquire(requests) : null;
        } finally {
            offered = List.of();
        }
    }

    private boolean arePlain(List<ScheduledRequest> requests) {
        for (int i = 0; i < requests.size(); i++) {
            ScheduledRequest request = requests.get(i);
            RequestOptions options = request.checked().options();
            if (request.needsInstanceThread()
                    || options.deadlineNanos().isPresent()
                    || policy.timeoutNanos(options.timeoutMicros()) != 0) {
                return false;
            }
        }
        return true;
    }

    private @Nullable InstanceHandle acquire(List<ScheduledRequest> requests) {
        InstanceHandle handle = idleInstances.acquireIdle();
        boolean succeeded = false;
        try {
            boolean taken = batcher.takeUnqueued(handle, requests);
            if (!taken) { // all were completed meanwhile
                idleInstances.addIdle(handle);
            }
            succeeded = true;
            return taken ? handle : null;
        } finally {
            if (!succeeded) {
                idleInstances.reclaim(handle);
            }
        }
    }

    @Override
    public void rewind() {
        index = -1;
    }

    @Override
    public boolean next() {
        index++;
        return index < offered.size();
    }

    @Override
    public ScheduledRequest current() {
        return offered.get(index);
    }

    @Override
    public int batchSize() {
        return offered.get(index).checked().batchSize();
    }

    @Override
    public long enqueuedNanos() {
        return offered.get(index).enqueuedNanos();
    }

    @Override
    public boolean joins() {
        return true;
    }
}
