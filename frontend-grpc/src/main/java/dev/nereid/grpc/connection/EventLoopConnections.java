package dev.nereid.grpc.connection;

import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.ToIntFunction;

/**
 * Checks the connections of one event loop periodically. Confined to that event loop, except for the counts of calls,
 * which other event loops read.
 *
 * <p>The event loop checks its connections four times a second while they have calls.
 */
final class EventLoopConnections {
    private static final long TICK_MILLIS = 250;

    /** The divisor of the call limit that bounds stale calls without a request while connections have shares. */
    private static final int STALE_PART = 8;

    private final EventLoop eventLoop;
    private final OpenCallLimit calls;
    private final Collection<EventLoopConnections> all;
    private final Set<ConnectionLimits> connections = new LinkedHashSet<>();
    private final Tally stale = new Tally();
    private final Tally incomplete = new Tally();
    private boolean ticking;

    /** Creates an event loop without connections, with a view of all event loops with connections. */
    EventLoopConnections(EventLoop eventLoop, OpenCallLimit calls, Collection<EventLoopConnections> all) {
        this.eventLoop = eventLoop;
        this.calls = calls;
        this.all = all;
    }

    void add(ConnectionLimits connection) {
        connections.add(connection);
    }

    void remove(ConnectionLimits connection) {
        connections.remove(connection);
    }

    /** Schedules the next check of the connections, unless it is scheduled, until no connection has calls. */
    void scheduleTick() {
        if (!ticking) {
            ticking = true;
            var _ = eventLoop.schedule(this::tick, TICK_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    private void tick() {
        ticking = false;
        boolean isActive = true; // also after a failure, such as a full heap: checks must not end
        try {
            isActive = checkAll();
        } finally {
            if (isActive) {
                scheduleTick();
            }
        }
    }

    /** Checks all connections; returns whether one has calls. */
    private boolean checkAll() {
        boolean isActive = false;
        for (ConnectionLimits connection : List.copyOf(connections)) {
            if (connection.isActive()) {
                connection.check();
                isActive |= connection.isActive();
            }
        }
        if (calls.isShared()) {
            stale.count(connections, ConnectionLimits::stale);
            incomplete.count(connections, ConnectionLimits::incomplete);
            disconnectLargest(EventLoopConnections::stale, ConnectionLimits::stale, calls.max() / STALE_PART);
            if (calls.isFull()) {
                disconnectLargest(EventLoopConnections::incomplete, ConnectionLimits::incomplete, calls.max() / 2);
            }
        } else {
            stale.clear();
            incomplete.clear();
        }
        return isActive;
    }

    private Tally stale() {
        return stale;
    }

    private Tally incomplete() {
        return incomplete;
    }

    /**
     * Disconnects the clients with the most calls without a request. Does so if such calls of all event loops together
     * exceed a limit. If clients of another event loop keep far more of them, that event loop disconnects those.
     *
     * @param tally selects the counts of an event loop
     * @param max the limit of such calls
     */
    private void disconnectLargest(
            Function<EventLoopConnections, Tally> tally, ToIntFunction<ConnectionLimits> count, long max) {
        long excess = -max;
        int largest = 0;
        for (EventLoopConnections each : all) {
            excess += tally.apply(each).sum;
            largest = Math.max(largest, tally.apply(each).max);
        }
        if (excess <= 0) {
            return;
        }
        List<ConnectionLimits> largestFirst = new ArrayList<>(connections);
        largestFirst.sort(Comparator.comparingInt(count).reversed());
        for (ConnectionLimits connection : largestFirst) {
            int own = count.applyAsInt(connection);
            if (excess <= 0 || own <= largest / 2) {
                return;
            }
            excess -= own;
            connection.disconnect("too many calls without a request");
        }
    }

    /** Counts of one event loop's calls, read by the other event loops. */
    private static final class Tally {
        private volatile long sum;

        /** The count of the connection with the most calls. */
        private volatile int max;

        private void count(Set<ConnectionLimits> connections, ToIntFunction<ConnectionLimits> count) {
            long newSum = 0;
            int newMax = 0;
            for (ConnectionLimits connection : connections) {
                int own = count.applyAsInt(connection);
                newSum += own;
                newMax = Math.max(newMax, own);
            }
            sum = newSum;
            max = newMax;
        }

        private void clear() {
            sum = 0;
            max = 0;
        }
    }
}
