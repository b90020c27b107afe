package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The handle of one instance at the queue of its model. The lists are confined to the thread that runs the instance;
 * the rest is guarded by the lock of the queue.
 *
 * <p>A thread that offers a request may acquire an idle instance of short executions: it runs the instance while the
 * instance's own thread waits on, and then releases it.
 */
public final class InstanceHandle implements OfferResult {
    /** Runs the instance on the thread that acquired it, and releases it. */
    final Runnable directRun;

    /** The load of the instance by the rate limiter; always 0 without limits. */
    final LongSupplier load;

    /** The instance's own thread, once it has waited; guarded by the lock of the queue. */
    @Nullable
    Thread thread;

    /** Whether that thread waits and is not woken; guarded likewise. */
    boolean waiting;

    /** The instance that became idle before this one and still is. Present if this one is idle; guarded likewise. */
    @Nullable
    InstanceHandle idleBefore;

    /** Whether only the instance's own thread may run it, since it is placed. Set before the instance first waits. */
    boolean placed;

    /** Whether the instance takes no more batches; guarded by the lock of the queue. */
    boolean retired;

    /** The begun requests of the next batch; filled by the queue, emptied by the instance. */
    final List<ScheduledRequest> taken = new ArrayList<>();

    /** The requests that expired in the queue; filled by the queue, emptied by the instance. */
    final List<Deadline> expired = new ArrayList<>(0);

    InstanceHandle(Runnable directRun, LongSupplier load) {
        this.directRun = directRun;
        this.load = load;
    }

    /** Returns the requests of the next batch, to be removed by the instance. */
    public List<ScheduledRequest> taken() {
        return taken;
    }

    /** Rejects the requests whose deadline has passed in the queue. */
    public void rejectExpired() {
        if (!expired.isEmpty()) {
            expired.forEach(Deadline::rejectRequest);
            expired.clear();
        }
    }

    /** Restricts the instance to its own thread. Called before the instance first waits. */
    public void pin() {
        placed = true;
    }

    /** Runs the instance on the calling thread, which acquired it for direct execution. */
    public void runDirectly() {
        directRun.run();
    }
}
