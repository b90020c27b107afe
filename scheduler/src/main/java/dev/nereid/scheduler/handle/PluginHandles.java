package dev.nereid.scheduler.handle;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.memory.InputLease;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * The senders and leases on inputs that the plugin of one model has. Safe for use by any thread.
 *
 * <p>One that the plugin can not reach any more is ended, on a thread for actions of the plugin. The first one is reported,
 * and the first one of which is known where the plugin got it.
 */
public final class PluginHandles {
    /** The place of one handle in this many is recorded, until one is forgotten; then that of each. */
    static final int PLACE_INTERVAL = 1024;

    /** What a plugin may forget. */
    public enum Kind {
        /** The sender of a request. */
        SENDER,

        /** A lease on the inputs of a request. */
        LEASE
    }

    /** Receives what a plugin has forgotten. Safe for use by any thread. */
    @FunctionalInterface
    public interface Report {
        /** A report that is lost, for tests and models without a plugin. */
        Report NONE = (_, _, _) -> {};

        /**
         * Receives a report, before the server undoes what was forgotten. Never blocks.
         *
         * @param kind what was forgotten
         * @param number how many the plugin has forgotten so far
         * @param place where it got one of them; {@code null} if that was not recorded
         */
        void forgotten(Kind kind, long number, @Nullable Throwable place);
    }

    private final Executor actions;
    private final Report report;
    private final AtomicLong created = new AtomicLong();
    private final LongAdder leases = new LongAdder();
    private final Count senderCount = new Count(Kind.SENDER);
    private final Count leaseCount = new Count(Kind.LEASE);
    private volatile boolean used;

    /** Where a plugin got a handle. Its stack begins in the plugin. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("the plugin got one");
        }
    }

    /**
     * Creates the handles of a model, of which there are none yet.
     *
     * @param actions runs actions on what was forgotten, never on the calling thread
     * @param report receives what was forgotten
     */
    public PluginHandles(Executor actions, Report report) {
        this.actions = requireNonNull(actions, "actions");
        this.report = requireNonNull(report, "report");
    }

    /**
     * Returns the same handles with another report.
     *
     * @param changed receives what was forgotten
     * @return handles of which there are none yet
     */
    public PluginHandles with(Report changed) {
        return new PluginHandles(actions, changed);
    }

    /**
     * Returns whether the plugin has ever got a handle. Then it may read inputs until it has forgotten them.
     *
     * @return whether it has
     */
    public boolean areUsed() {
        return used;
    }

    /**
     * Returns the leases on inputs that the plugin has not ended.
     *
     * @return their number; the next moment it may be another one
     */
    public long openLeases() {
        return leases.sum();
    }

    /**
     * Creates a handle of a sender.
     *
     * @param sender the sender
     * @param reachability the life of what the plugin has of the request
     * @return the handle for the plugin, to which the server must not refer
     */
    public SenderHandle sender(EndableSender sender, Reachability reachability) {
        Throwable place = place(senderCount);
        sender.retainHandle();
        SenderHandle handle = new SenderHandle(sender, reachability);
        reachability.whenUnreachable(() -> unreachable(sender, place));
        return handle;
    }

    private void unreachable(EndableSender sender, @Nullable Throwable place) {
        if (sender.releaseHandle()) {
            actions.execute(() -> sender.forgotten(() -> senderCount.add(place)));
        }
    }

    /**
     * Creates a handle of a lease.
     *
     * @param lease the lease
     * @param reachability the life of what the plugin has of the request
     * @return the handle for the plugin, to which the server must not refer
     */
    public Runnable lease(InputLease lease, Reachability reachability) {
        Throwable place = place(leaseCount);
        leases.increment();
        lease.onEnd(leases::decrement);
        LeaseHandle handle = new LeaseHandle(lease, reachability);
        reachability.whenUnreachable(() -> unreachable(lease, place));
        return handle;
    }

    private void unreachable(InputLease lease, @Nullable Throwable place) {
        if (!lease.isEnded()) {
            actions.execute(() -> lease.end(() -> leaseCount.add(place)));
        }
    }

    private @Nullable Throwable place(Count count) {
        used = true;
        boolean isSample = created.getAndIncrement() % PLACE_INTERVAL == 0;
        return isSample || count.needsPlace() ? new Place() : null;
    }

    /** Reports how many were forgotten since the last report, as the model is closed. */
    public void close() {
        senderCount.close();
        leaseCount.close();
    }

    /** What was forgotten of one kind. */
    private final class Count {
        private final Kind kind;
        private final AtomicLong forgotten = new AtomicLong();
        private final AtomicLong reported = new AtomicLong();
        private final AtomicBoolean placeReported = new AtomicBoolean();

        Count(Kind kind) {
            this.kind = kind;
        }

        boolean needsPlace() {
            return forgotten.get() > 0 && !placeReported.get();
        }

        void add(@Nullable Throwable place) {
            long number = forgotten.incrementAndGet();
            boolean showsPlace = place != null && placeReported.compareAndSet(false, true);
            if (number == 1 || showsPlace) {
                report(number, place);
            }
        }

        private void report(long number, @Nullable Throwable place) {
            reported.accumulateAndGet(number, Math::max);
            report.forgotten(kind, number, place);
        }

        void close() {
            long number = forgotten.get();
            if (number > reported.get()) {
                report(number, null);
            }
        }
    }
}
