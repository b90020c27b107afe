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
 * <p>Each request takes the next place when it begins. Only the responses of the first place are delivered; responses
 * of later places are held until their place becomes the first. The terminal response of a place ends it. Since every
 * request that begins completes, no place blocks the others for ever. A request that never begins has no place, and its
 * completion does not pass through here.
 *
 * <p>One thread at a time delivers: a thread that adds a deliverable response while no other thread delivers becomes
 * the sender, and delivers until none is left; the others only add. A held response keeps a reference to its request.
 */
public final class ResponseOrder {
    /** Receives the responses to one request when its place is the first. An interface, since it depends on this class. */
    interface Recipient {
        void retain();

        void sendNow(ResponseEvent event);

        void release();
    }

    /** A response and its recipient. */
    private record Held(Recipient recipient, ResponseEvent event, boolean last) {}

    private final ReentrantLock lock = new ReentrantLock();

    /** The responses of places after the first. */
    @GuardedBy("lock")
    private final Map<Long, List<Held>> ahead = new HashMap<>();

    /** The responses to deliver, in order. */
    @GuardedBy("lock")
    private final Queue<Held> ready = new ArrayDeque<>();

    /** The first place that has not ended. */
    @GuardedBy("lock")
    private long head;

    /** {@code true} while a thread delivers responses. */
    @GuardedBy("lock")
    private boolean sending;

    /** The number of places taken. */
    private final AtomicLong places = new AtomicLong();

    /** Takes the next place. Called under the lock of the queue for a request that leaves the queue. */
    long nextPlace() {
        return places.getAndIncrement();
    }

    /**
     * Delivers a response when its place is the first. Delivery is before the return, or later on another thread.
     *
     * @param place the place of the request, from 0 without gaps
     * @param recipient the receiver; the caller has retained its request
     * @param last whether this response ends the place
     */
    void send(long place, Recipient recipient, ResponseEvent event, boolean last) {
        recipient.retain();
        if (add(place, new Held(recipient, event, last))) {
            ObserverScope observers = ObserverScope.current();
            observers.open(); // requests that follow from these responses are queued together
            try {
                for (Held next = next(); next != null; next = next()) {
                    next.recipient.sendNow(next.event);
                    next.recipient.release();
                }
            } finally {
                observers.close();
            }
        }
    }

    /** Adds a response; returns whether the caller has to deliver the ready ones. */
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

    /** Moves {@link #head} to the next place that has not ended. */
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
