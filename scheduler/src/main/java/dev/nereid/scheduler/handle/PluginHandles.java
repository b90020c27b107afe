package dev.nereid.scheduler.handle;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.BestEffort;
import dev.nereid.scheduler.memory.InputLease;
import dev.nereid.spi.ResponseSender;
import java.lang.ref.Reference;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Creates the plugin's handles of senders and leases, and ends the forgotten ones. Safe for use by any thread.
 *
 * <p>A handle that the plugin cannot reach any more is ended, on a thread for actions of the plugin. Two handles are
 * reported: the first one, and the first one with a recorded place where the plugin got it.
 */
public final class PluginHandles {
    /** The place of one handle in this many is recorded, until a handle is forgotten; then the place of each. */
    static final int PLACE_INTERVAL = 1024;

    /** The kind of a handle that a plugin may forget. */
    public enum Kind {
        /** The sender of a request. */
        SENDER,

        /** A lease on the inputs of a request. */
        LEASE
    }

    /** Receives reports of forgotten handles. Safe for use by any thread. */
    @FunctionalInterface
    public interface Report {
        /** A report that is lost, for tests and models without a plugin. */
        Report NONE = (_, _, _) -> {};

        /**
         * Receives a report, before the server ends a forgotten handle. Never blocks.
         *
         * @param number the number of handles that the plugin has forgotten so far
         * @param place the place where it got one of them; {@code null} if that was not recorded
         */
        void forgotten(Kind kind, long number, @Nullable Throwable place);
    }

    private final Executor actions;
    private final Report report;
    private final AtomicLong created = new AtomicLong();
    private final LongAdder leases = new LongAdder();
    private final ForgottenCount senderCount = new ForgottenCount();
    private final ForgottenCount leaseCount = new ForgottenCount();
    private volatile boolean used;

    /** A forgotten handle that could not be ended yet, with the others linked to it; {@code null} for none. */
    private final AtomicReference<@Nullable HandleEnd> left = new AtomicReference<>();

    /** The place where a plugin got a handle. Its stack begins in the plugin. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("the plugin got one");
        }
    }

    /** Begins without handles. {@code actions} ends forgotten handles, never on the calling thread. */
    public PluginHandles(Executor actions, Report report) {
        this.actions = requireNonNull(actions, "actions");
        this.report = requireNonNull(report, "report");
    }

    /** Begins without handles, with the same executor and another receiver of reports of forgotten handles. */
    public PluginHandles with(Report changed) {
        return new PluginHandles(actions, changed);
    }

    /** Returns whether the plugin has ever got a handle. Then it may read inputs until it has forgotten them. */
    public boolean areUsed() {
        return used;
    }

    /** Returns the number of leases on inputs that the plugin has not ended at this moment. */
    public long openLeases() {
        endLeft();
        return leases.sum();
    }

    /** Creates the plugin's handle of a sender, to which the server must not refer. */
    public SenderHandle sender(EndableSender sender, Reachability reachability) {
        SenderEnd end = new SenderEnd(sender, place(senderCount));
        sender.retainHandle();
        SenderHandle handle = new SenderHandle(sender, reachability, end);
        reachability.whenUnreachable(end::unreachable);
        return handle;
    }

    /** Creates the plugin's handle of a lease, to which the server must not refer. */
    public Runnable lease(InputLease lease, Reachability reachability) {
        LeaseEnd end = new LeaseEnd(lease, place(leaseCount));
        leases.increment();
        lease.onEnd(() -> {
            end.clear();
            leases.decrement();
        });
        LeaseHandle handle = new LeaseHandle(lease, reachability);
        reachability.whenUnreachable(end::unreachable);
        return handle;
    }

    /** Ends a forgotten handle on another thread; if that is not possible now, at a later call. */
    private void end(HandleEnd forgotten) {
        try {
            actions.execute(forgotten);
        } catch (RuntimeException e) { // such as a rejection; the caller, a cleaner of the JDK, ignores it
            leave(forgotten);
            BestEffort.run("what a plugin has forgotten is ended later", () -> {
                throw e;
            });
        }
    }

    private void leave(HandleEnd forgotten) {
        HandleEnd others;
        do {
            others = left.get();
            forgotten.next = others;
        } while (!left.compareAndSet(others, forgotten));
    }

    /** Ends the handles that could not be ended before. */
    private void endLeft() {
        HandleEnd each = left.get() == null ? null : left.getAndSet(null);
        while (each != null) {
            HandleEnd next = each.next;
            end(each);
            each = next;
        }
    }

    private @Nullable Throwable place(ForgottenCount count) {
        endLeft();
        used = true;
        boolean isSample = created.getAndIncrement() % PLACE_INTERVAL == 0;
        return isSample || count.needsPlace() ? new Place() : null;
    }

    /** Reports the handles forgotten since the last report, as the model is closed. */
    public void close() {
        report(Kind.SENDER, senderCount.total(), null);
        report(Kind.LEASE, leaseCount.total(), null);
    }

    private void count(Kind kind, ForgottenCount count, @Nullable Throwable place) {
        report(kind, count.add(place), place);
    }

    private void report(Kind kind, long number, @Nullable Throwable place) {
        if (number > 0) {
            report.forgotten(kind, number, place);
        }
    }

    /** The end of one handle. It exists before the plugin forgets the handle, to which it must not refer. */
    abstract static class HandleEnd implements Runnable {
        final @Nullable Throwable place;

        /** The next handle that could not be ended; guarded by its place in that list. */
        @Nullable
        HandleEnd next;

        HandleEnd(@Nullable Throwable place) {
            this.place = place;
        }
    }

    /** The end of a sender. It refers to the sender only while there is something to end. */
    final class SenderEnd extends HandleEnd {
        private volatile @Nullable EndableSender sender;

        private SenderEnd(EndableSender sender, @Nullable Throwable place) {
            super(place);
            this.sender = sender;
        }

        /** Records that the plugin has begun a response, which it may forget after the end too. */
        void begun(EndableSender given) {
            sender = given;
        }

        /** Drops the sender if it has nothing to end. */
        void ended(EndableSender given) {
            if (!given.needsEnd()) {
                sender = null;
                if (given.needsEnd()) { // another thread has begun a response
                    sender = given;
                }
            }
        }

        void unreachable() {
            EndableSender forgotten = sender;
            if (forgotten != null && forgotten.releaseHandle()) {
                end(this);
            }
        }

        @Override
        public void run() {
            EndableSender forgotten = sender;
            if (forgotten != null) {
                forgotten.forgotten(() -> count(Kind.SENDER, senderCount, place));
            }
        }
    }

    /** The end of a lease. It refers to the lease until that is ended. */
    private final class LeaseEnd extends HandleEnd {
        private volatile @Nullable InputLease lease;

        LeaseEnd(InputLease lease, @Nullable Throwable place) {
            super(place);
            this.lease = lease;
        }

        void clear() {
            lease = null;
        }

        void unreachable() {
            if (lease != null) {
                end(this);
            }
        }

        @Override
        public void run() {
            InputLease forgotten = lease;
            if (forgotten != null) {
                forgotten.end(() -> count(Kind.LEASE, leaseCount, place));
            }
        }
    }

    /**
     * The plugin's handle of a lease on inputs. Safe for use by any thread.
     *
     * <p>The server never refers to it, so that it notices when the plugin has forgotten the lease.
     */
    private static final class LeaseHandle implements Runnable {
        private final InputLease lease;
        private final Reachability reachability;

        LeaseHandle(InputLease lease, Reachability reachability) {
            this.lease = lease;
            this.reachability = reachability;
        }

        /**
         * Ends the lease. Does not check the stack: a plugin may pass this as an action that releases memory, which the
         * server runs once, whatever it throws.
         */
        @Override
        public void run() {
            try {
                lease.run();
            } finally {
                Reference.reachabilityFence(reachability);
                Reference.reachabilityFence(this);
            }
        }
    }

    /** A sender that the server ends when its plugin has forgotten it. Safe for use by any thread. Implemented by {@code batch}. */
    public interface EndableSender extends ResponseSender {
        void retainHandle();

        /**
         * Removes a handle that the plugin can not reach any more. Never blocks.
         *
         * @return whether {@link #forgotten} has something to do: it was the last one
         */
        boolean releaseHandle();

        /** Returns whether {@link #forgotten} has something to do now. Never blocks. */
        boolean needsEnd();

        /**
         * Ends the sender and fails its request, unless it is ended. Discards the open responses: nothing reaches them any
         * more.
         *
         * @param report called once the sender is ended by this call, before its request fails
         */
        void forgotten(Runnable report);
    }
}
