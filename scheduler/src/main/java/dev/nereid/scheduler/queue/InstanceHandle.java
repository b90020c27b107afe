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
 * <p>An instance of short executions that is idle may be lent to a thread that offers a request: then that thread runs
 * the instance, while the instance's own waits on, and gives the seat back.
 */
public final class InstanceHandle implements OfferResult {
    /** Runs the instance on a thread to which the seat was lent, and gives the seat back. */
    final Runnable directRun;

    /** Tells how much the instance has had of what is limited; always 0 if nothing is. */
    final LongSupplier load;

    /** The instance's own thread, once it waited; guarded by the lock of the queue. */
    @Nullable
    Thread thread;

    /** Whether that thread waits and was not called; guarded likewise. */
    boolean waiting;

    /** The instance that became idle before this one and still is, if this one is idle; guarded likewise. */
    @Nullable
    InstanceHandle idleBefore;

    /** Whether only the instance's own thread may run it, which has its place; set before the instance first waits. */
    boolean placed;

    /** Whether the instance takes no more; guarded by the lock of the queue. */
    boolean retired;

    /** The requests that have begun and make the next batch; filled by the queue, emptied by the instance. */
    final List<ScheduledRequest> taken = new ArrayList<>();

    /** The requests whose time was over in the queue; filled by the queue, emptied by the instance. */
    final List<Deadline> expired = new ArrayList<>(0);

    InstanceHandle(Runnable lentRun, LongSupplier load) {
        this.directRun = lentRun;
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

    /** Keeps the instance to its own thread. To be called before the instance first waits. */
    public void pin() {
        placed = true;
    }

    /** Runs the instance on the calling thread, to which the queue gave it for direct execution. */
    public void runDirectly() {
        directRun.run();
    }
}
