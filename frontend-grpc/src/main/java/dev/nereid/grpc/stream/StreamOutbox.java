package dev.nereid.grpc.stream;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Queues one stream's responses and decides when the next request is read. Guarded by one lock, under which nothing
 * but this class runs.
 *
 * <p>Requests to models that answer one to one are answered in the order in which they came: the answer to the first of
 * them is the only one that may be written. Requests to decoupled models take turns, one response each. The two kinds
 * take turns with each other.
 *
 * <p>Nobody ever waits for a client. Two bounds keep one that reads slowly, or not at all, from filling the memory. While
 * much waits, or many requests are not answered, the stream is not read on, so that a client that sends more than it reads
 * or than models answer is slowed down. One request more than a bound is always taken, of any size. And the responses
 * of decoupled models that wait behind others of the same request may take so much together and no more: the model is
 * ahead of the client then, and does not slow down. The first that waits of each request is not counted among them, so
 * that one response may have any size, and requests that are answered once never break this bound; their number is
 * what the first bound limits.
 */
final class StreamOutbox {
    /** How many requests may be open for each response that may wait: models work on them, whatever the client reads. */
    private static final int OPEN_PER_WAITING = 16;

    /** Outcome of offering a message to the outbox. */
    enum Admission {
        /** It waits for its turn. */
        ACCEPTED,
        /** Nobody wants it any more; it stays the caller's. */
        DROPPED,
        /** The client is too far behind; it stays the caller's. */
        OVERFLOW
    }

    /** The waiting responses of one request. Guarded by the lock of its outbox. */
    static final class Lane {
        private final StreamedRequest request;
        private final boolean isDecoupled;
        private final long requestBytes;
        private final ArrayDeque<OutgoingMessage> waiting = new ArrayDeque<>();
        private boolean ended;

        private Lane(StreamedRequest request, boolean isDecoupled, long requestBytes) {
            this.request = request;
            this.isDecoupled = isDecoupled;
            this.requestBytes = requestBytes;
        }
    }

    /**
     * The next message to write and its request.
     *
     * @param request the request that it answers
     * @param outgoing what to say; the receiver's from now on
     */
    record Entry(StreamedRequest request, OutgoingMessage outgoing) {}

    /**
     * Unwritten messages and unfinished requests of a closed stream.
     *
     * @param waiting what was not written; the receiver's from now on
     * @param requests those that were not answered to the end
     */
    record Remainder(List<OutgoingMessage> waiting, List<StreamedRequest> requests) {}

    private final StreamLimits limits;
    private final ReentrantLock lock = new ReentrantLock();

    /** All that were not answered to the end. */
    @GuardedBy("lock")
    private final Set<Lane> open = new HashSet<>();

    /** How much memory their inputs take. */
    @GuardedBy("lock")
    private long openBytes;

    /** Those of them whose answers have an order, in that order. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> ordered = new ArrayDeque<>();

    /** Decoupled ones that have something to write, in the order of their turns. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> readyLanes = new ArrayDeque<>();

    @GuardedBy("lock")
    private boolean orderedWasLast;

    @GuardedBy("lock")
    private int waiting;

    @GuardedBy("lock")
    private long waitingBytes;

    /** How much of that waits behind something else of the same request. */
    @GuardedBy("lock")
    private long bytesAhead;

    /** Whether the transport was asked for a message that has not come. */
    @GuardedBy("lock")
    private boolean reading;

    @GuardedBy("lock")
    private boolean halfClosed;

    @GuardedBy("lock")
    private boolean closed;

    StreamOutbox(StreamLimits limits) {
        this.limits = limits;
    }

    /**
     * Takes in a request, in the order in which they come.
     *
     * @param bytes how much memory its inputs take
     * @return where its answers go; empty if the outbox is closed
     */
    Optional<Lane> open(StreamedRequest request, boolean isDecoupled, long bytes) {
        lock.lock();
        try {
            if (closed) {
                return Optional.empty();
            }
            Lane lane = new Lane(request, isDecoupled, bytes);
            open.add(lane);
            openBytes += bytes;
            if (!isDecoupled) {
                ordered.add(lane);
            }
            return Optional.of(lane);
        } finally {
            lock.unlock();
        }
    }

    /** Takes in something to write, its owner from then on, if it can be taken. */
    Admission offer(Lane lane, OutgoingMessage outgoing) {
        lock.lock();
        try {
            if (closed || lane.ended) {
                return Admission.DROPPED;
            }
            if (!lane.waiting.isEmpty()) {
                if (outgoing.byteSize() > 0 && bytesAhead >= limits.bytesAhead()) {
                    return Admission.OVERFLOW;
                }
                bytesAhead += outgoing.byteSize();
            } else if (lane.isDecoupled) {
                readyLanes.add(lane);
            }
            lane.ended = outgoing.isFinal();
            lane.waiting.add(outgoing);
            waiting++;
            waitingBytes += outgoing.byteSize();
            return Admission.ACCEPTED;
        } finally {
            lock.unlock();
        }
    }

    /** Takes out what is to be written next, if anything can be. */
    Optional<Entry> poll() {
        lock.lock();
        try {
            Lane lane = next();
            if (lane == null) {
                return Optional.empty();
            }
            OutgoingMessage outgoing = lane.waiting.remove();
            waiting--;
            waitingBytes -= outgoing.byteSize();
            if (!lane.waiting.isEmpty()) {
                bytesAhead -= lane.waiting.element().byteSize();
            }
            if (outgoing.isFinal()) {
                open.remove(lane);
                openBytes -= lane.requestBytes;
            }
            if (!lane.isDecoupled) {
                orderedWasLast = true;
                if (outgoing.isFinal()) {
                    ordered.remove();
                }
            } else {
                orderedWasLast = false;
                readyLanes.remove();
                if (!lane.waiting.isEmpty()) {
                    readyLanes.add(lane);
                }
            }
            return Optional.of(new Entry(lane.request, outgoing));
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private @Nullable Lane next() {
        Lane first = ordered.peek();
        boolean isReady = first != null && !first.waiting.isEmpty();
        return isReady && (readyLanes.isEmpty() || !orderedWasLast) ? first : readyLanes.peek();
    }

    /**
     * Decides whether the transport is asked for another message: never for two at a time.
     *
     * @param isRead whether the client reads what is written
     */
    boolean tryStartRead(boolean isRead) {
        lock.lock();
        try {
            boolean allowed = !reading
                    && !halfClosed
                    && !closed
                    && waiting < limits.responses()
                    && waitingBytes < limits.bytes()
                    && open.size() < limits.responses() * (isRead ? (long) OPEN_PER_WAITING : 1)
                    && openBytes / OPEN_PER_WAITING < limits.bytes();
            reading |= allowed;
            return allowed;
        } finally {
            lock.unlock();
        }
    }

    /** Notes that a message came. */
    void onRead() {
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
    Remainder close() {
        lock.lock();
        try {
            closed = true;
            List<OutgoingMessage> left = new ArrayList<>(waiting);
            List<StreamedRequest> requests = new ArrayList<>(open.size());
            for (Lane lane : open) {
                left.addAll(lane.waiting);
                requests.add(lane.request);
            }
            open.clear();
            openBytes = 0;
            ordered.clear();
            readyLanes.clear();
            waiting = 0;
            waitingBytes = 0;
            bytesAhead = 0;
            return new Remainder(left, requests);
        } finally {
            lock.unlock();
        }
    }
}
