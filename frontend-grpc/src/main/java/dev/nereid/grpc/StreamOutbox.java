package dev.nereid.grpc;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * What waits to be written to one stream, and what may be read from it. Guarded by one lock, under which nothing but
 * this class runs.
 *
 * <p>Requests to models that answer one to one are answered in the order in which they came: the answer to the first of
 * them is the only one that may be written. Requests to decoupled models take turns, one response each. The two kinds
 * take turns with each other.
 *
 * <p>Two bounds keep a client that does not read, or that sends more than it lets the server answer, from filling the
 * memory: the stream is not read on while much waits, and a decoupled model that runs ahead of its client is told so.
 */
final class StreamOutbox {
    /**
     * How much may wait.
     *
     * @param responses how many responses of one request, and how many of all requests of the stream
     * @param bytes how many bytes of outputs, of one request and of all
     */
    record Limits(int responses, long bytes) {
        private boolean allow(int waiting, long waitingBytes) {
            return waiting < responses && waitingBytes < bytes;
        }
    }

    /** The answers to one request, first those that wait. Guarded by the lock of its outbox. */
    static final class Lane {
        private final StreamedRequest request;
        private final boolean isDecoupled;
        private final ArrayDeque<Outgoing> waiting = new ArrayDeque<>();
        private long waitingBytes;
        private boolean ended;

        private Lane(StreamedRequest request, boolean isDecoupled) {
            this.request = request;
            this.isDecoupled = isDecoupled;
        }
    }

    /**
     * What is to be written next.
     *
     * @param request the request that it answers
     * @param outgoing what to say; the receiver's from now on
     */
    record Taken(StreamedRequest request, Outgoing outgoing) {}

    /**
     * What a stream leaves behind that ends before its time.
     *
     * @param waiting what was not written; the receiver's from now on
     * @param requests those that were not answered to the end
     */
    record Remains(List<Outgoing> waiting, List<StreamedRequest> requests) {}

    private final Limits limits;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    /** All that were not answered to the end. */
    @GuardedBy("lock")
    private final Set<Lane> open = new HashSet<>();

    /** Those of them whose answers have an order, in that order. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> ordered = new ArrayDeque<>();

    /** Decoupled ones that have something to write, in the order of their turns. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> turns = new ArrayDeque<>();

    @GuardedBy("lock")
    private boolean orderedWasLast;

    @GuardedBy("lock")
    private int waiting;

    @GuardedBy("lock")
    private long waitingBytes;

    /** Whether the transport was asked for a message that has not come. */
    @GuardedBy("lock")
    private boolean reading;

    @GuardedBy("lock")
    private boolean halfClosed;

    @GuardedBy("lock")
    private boolean closed;

    StreamOutbox(Limits limits) {
        this.limits = limits;
    }

    /**
     * Takes in a request, in the order in which they come.
     *
     * @return where its answers go; empty if the outbox is closed
     */
    Optional<Lane> open(StreamedRequest request, boolean isDecoupled) {
        lock.lock();
        try {
            if (closed) {
                return Optional.empty();
            }
            Lane lane = new Lane(request, isDecoupled);
            open.add(lane);
            if (!isDecoupled) {
                ordered.add(lane);
            }
            return Optional.of(lane);
        } finally {
            lock.unlock();
        }
    }

    /** Takes in something to write. Returns false if nobody wants it any more; it then stays the caller's. */
    boolean offer(Lane lane, Outgoing outgoing) {
        lock.lock();
        try {
            if (closed || lane.ended) {
                return false;
            }
            lane.ended = outgoing.isLast();
            if (lane.isDecoupled && lane.waiting.isEmpty()) {
                turns.add(lane);
            }
            lane.waiting.add(outgoing);
            lane.waitingBytes += outgoing.byteSize();
            waiting++;
            waitingBytes += outgoing.byteSize();
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Takes out what is to be written next, if anything can be. */
    Optional<Taken> poll() {
        lock.lock();
        try {
            Lane lane = next();
            if (lane == null) {
                return Optional.empty();
            }
            Outgoing outgoing = lane.waiting.remove();
            lane.waitingBytes -= outgoing.byteSize();
            waiting--;
            waitingBytes -= outgoing.byteSize();
            if (outgoing.isLast()) {
                open.remove(lane);
            }
            if (!lane.isDecoupled) {
                orderedWasLast = true;
                if (outgoing.isLast()) {
                    ordered.remove();
                }
            } else {
                orderedWasLast = false;
                turns.remove();
                if (!lane.waiting.isEmpty()) {
                    turns.add(lane);
                }
            }
            changed.signalAll();
            return Optional.of(new Taken(lane.request, outgoing));
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private @Nullable Lane next() {
        Lane first = ordered.peek();
        boolean isReady = first != null && !first.waiting.isEmpty();
        return isReady && (turns.isEmpty() || !orderedWasLast) ? first : turns.peek();
    }

    /**
     * Waits until a request may have more responses wait. Blocks.
     *
     * @param nanos how long to wait; 0 to ask only
     * @return whether it may
     * @throws InterruptedException if the thread is interrupted
     */
    boolean awaitRoom(Lane lane, long nanos) throws InterruptedException {
        long left = nanos;
        lock.lockInterruptibly();
        try {
            while (!closed && !lane.ended && !limits.allow(lane.waiting.size(), lane.waitingBytes)) {
                if (left <= 0) {
                    return false;
                }
                left = changed.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Decides whether the transport is asked for another message: never for two at a time.
     *
     * @param isRead whether the client reads what is written
     */
    boolean takePermitToRead(boolean isRead) {
        lock.lock();
        try {
            boolean allowed = !reading
                    && !halfClosed
                    && !closed
                    && limits.allow(waiting, waitingBytes)
                    && (isRead || open.size() < limits.responses());
            reading |= allowed;
            return allowed;
        } finally {
            lock.unlock();
        }
    }

    /** Notes that a message came. */
    void hasRead() {
        lock.lock();
        try {
            reading = false;
        } finally {
            lock.unlock();
        }
    }

    /** Notes that no more messages come. */
    void halfClose() {
        lock.lock();
        try {
            halfClosed = true;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether every request was answered and none follows. */
    boolean isDone() {
        lock.lock();
        try {
            return halfClosed && !closed && open.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /** Takes nothing in from now on. Returns what is left, once. */
    Remains close() {
        lock.lock();
        try {
            closed = true;
            List<Outgoing> left = new ArrayList<>(waiting);
            List<StreamedRequest> requests = new ArrayList<>(open.size());
            for (Lane lane : open) {
                left.addAll(lane.waiting);
                requests.add(lane.request);
            }
            open.clear();
            ordered.clear();
            turns.clear();
            waiting = 0;
            waitingBytes = 0;
            changed.signalAll();
            return new Remains(left, requests);
        } finally {
            lock.unlock();
        }
    }
}
