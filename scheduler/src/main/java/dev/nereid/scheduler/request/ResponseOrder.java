package dev.nereid.scheduler.request;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Delivers responses of a model in the order in which its requests began. Guarded by its own lock; observers are called
 * outside of it.
 *
 * <p>Each request gets a place when it begins, one after the other. Only the answers of the place at the head are told;
 * those of later places are held until the head gets there. The last answer of a place moves the head on. Since every
 * request that begins is answered, no place holds up the others for ever. A request that never began has no place, and
 * its answer does not come here.
 *
 * <p>One thread at a time tells: whoever brings an answer that may be told while nobody tells any becomes the teller,
 * and tells until none is left; the others only add. The request stays in use while an answer of it is held.
 */
public final class ResponseOrder {
    /** Receives the responses to one request when their place comes. */
    interface Recipient {
        /** Retains the request. */
        void retain();

        /** Receives a response. */
        void sendNow(ResponseEvent answer);

        /** Releases the request. */
        void release();
    }

    /** A response that waits for its place. */
    private record Held(Recipient recipient, ResponseEvent answer, boolean last) {}

    private final ReentrantLock lock = new ReentrantLock();

    /** The answers of places behind the head. */
    @GuardedBy("lock")
    private final Map<Long, List<Held>> ahead = new HashMap<>();

    /** The answers to be told, in order. */
    @GuardedBy("lock")
    private final Queue<Held> ready = new ArrayDeque<>();

    /** The first place that has not ended. */
    @GuardedBy("lock")
    private long head;

    /** Whether some thread is about to tell answers. */
    @GuardedBy("lock")
    private boolean sending;

    /** How many places were given. */
    private final AtomicLong places = new AtomicLong();

    /** Returns the next place; called under the lock of the queue for a request that leaves one. */
    long nextPlace() {
        return places.getAndIncrement();
    }

    /**
     * Tells an answer when it is its turn: before the return, or later by another thread.
     *
     * @param place the place of the request, from 0 without gaps
     * @param recipient the receiver, whose request the caller has retained
     * @param last whether the place ends with this answer
     */
    void send(long place, Recipient recipient, ResponseEvent answer, boolean last) {
        recipient.retain();
        if (add(place, new Held(recipient, answer, last))) {
            for (Held next = next(); next != null; next = next()) {
                next.recipient.sendNow(next.answer);
                next.recipient.release();
            }
        }
    }

    /** Adds an answer; returns whether the caller has to tell what is ready. */
    private boolean add(long place, Held held) {
        lock.lock();
        try {
            if (place != head) {
                ahead.computeIfAbsent(place, key -> new ArrayList<>(1)).add(held);
                return false;
            }
            ready.add(held);
            if (held.last) {
                advance();
            }
            boolean first = !sending;
            sending = true;
            return first;
        } finally {
            lock.unlock();
        }
    }

    /** Moves the head to the next place that has not ended. */
    @GuardedBy("lock")
    private void advance() {
        boolean ended = true;
        while (ended) {
            head++;
            List<Held> held = ahead.remove(head);
            ended = held != null && held.getLast().last;
            if (held != null) {
                ready.addAll(held);
            }
        }
    }

    private @Nullable Held next() {
        lock.lock();
        try {
            Held next = ready.poll();
            sending = next != null;
            return next;
        } finally {
            lock.unlock();
        }
    }
}
