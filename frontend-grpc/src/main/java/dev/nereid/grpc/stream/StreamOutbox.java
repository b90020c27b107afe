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
 * <p>Requests to models with one response each complete in order of arrival: only the response to the first of them may
 * be written. Requests to decoupled models alternate, one response each. The two kinds alternate with each other.
 *
 * <p>No thread ever waits for a client. Two limits keep a client that reads slowly, or not at all, from filling the
 * memory. First, reading of the stream pauses while many responses wait or many requests are open, which slows down a
 * client that sends more than it reads or than models complete. One request beyond this limit is always accepted, of
 * any size. Second, the responses of decoupled models that wait behind others of the same request are limited in total:
 * such a model is ahead of the client, and does not slow down. The first waiting response of each request is not
 * counted, so that one response may have any size, and requests with one response never exceed this limit; the first
 * limit bounds their number.
 */
final class StreamOutbox {
    /**
     * The number of requests that may be open for each waiting response. Models execute them whether or not the client
     * reads.
     */
    private static final int OPEN_PER_WAITING = 16;

    /** Outcome of offering a message to the outbox. */
    enum OfferResult {
        /** The message waits to be written. */
        ACCEPTED,
        /** The request or the stream has ended; the caller keeps the message. */
        DROPPED,
        /** The client is too far behind; the caller keeps the message. */
        OVERFLOW
    }

    /** How far the messages of a request are written. */
    enum Progress {
        /** Messages wait. */
        WAITING,
        /** No message waits, and others may follow. */
        IDLE,
        /** No message is accepted any more. */
        ENDED
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

    /** The next message to write, owned by the receiver, and its request. */
    record Entry(StreamedRequest request, OutgoingMessage outgoing) {}

    /** Unwritten messages, owned by the receiver, and unfinished requests of a closed stream. */
    record Remainder(List<OutgoingMessage> waiting, List<StreamedRequest> requests) {}

    private final StreamLimits limits;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Set<Lane> open = new HashSet<>();

    /** The memory of their inputs. */
    @GuardedBy("lock")
    private long openBytes;

    /** Unfinished requests with ordered responses, in that order. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> ordered = new ArrayDeque<>();

    /** Decoupled requests with a message to write, in the order in which they alternate. */
    @GuardedBy("lock")
    private final ArrayDeque<Lane> readyLanes = new ArrayDeque<>();

    @GuardedBy("lock")
    private boolean orderedWasLast;

    @GuardedBy("lock")
    private int waiting;

    @GuardedBy("lock")
    private long waitingBytes;

    /** The part of the waiting bytes behind other messages of the same request. */
    @GuardedBy("lock")
    private long bytesAhead;

    /** {@code true} if a message was requested from the transport and has not arrived. */
    @GuardedBy("lock")
    private boolean reading;

    @GuardedBy("lock")
    private boolean halfClosed;

    @GuardedBy("lock")
    private boolean closed;

    StreamOutbox(StreamLimits limits) {
        this.limits = limits;
    }

    /** Adds a request, with memory of inputs, in order of arrival; returns its lane, empty if the outbox is closed. */
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

    /** Adds a message, and owns it from then on if it is accepted. */
    OfferResult offer(Lane lane, OutgoingMessage outgoing) {
        lock.lock();
        try {
            if (closed || lane.ended) {
                return OfferResult.DROPPED;
            }
            if (!lane.waiting.isEmpty()) {
                if (outgoing.byteSize() > 0 && bytesAhead >= limits.bytesAhead()) {
                    return OfferResult.OVERFLOW;
                }
                bytesAhead += outgoing.byteSize();
            } else if (lane.isDecoupled) {
                readyLanes.add(lane);
            }
            lane.ended = outgoing.isFinal();
            lane.waiting.add(outgoing);
            waiting++;
            waitingBytes += outgoing.byteSize();
            return OfferResult.ACCEPTED;
        } finally {
            lock.unlock();
        }
    }

    /** Says how far the messages of a request are written. */
    Progress progress(Lane lane) {
        lock.lock();
        try {
            if (closed || lane.ended) {
                return Progress.ENDED;
            }
            return lane.waiting.isEmpty() ? Progress.IDLE : Progress.WAITING;
        } finally {
            lock.unlock();
        }
    }

    /** Removes the message to be written next, if there is one. */
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

    /** Decides whether to request another message, never two at a time; {@code isRead} if the client reads. */
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

    /** Records that a message has arrived. */
    void onRead() {
        lock.lock();
        try {
            reading = false;
        } finally {
            lock.unlock();
        }
    }

    /** Records that no more messages arrive. */
    void halfClose() {
        lock.lock();
        try {
            halfClosed = true;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether every request has ended and none follows. */
    boolean isDone() {
        lock.lock();
        try {
            return halfClosed && !closed && open.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    /** Accepts nothing from now on. Returns the remainder, once. */
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
