package dev.nereid.scheduler;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Requests in the order of their arrival. Confined to the lock of the queue that it is part of.
 *
 * <p>A request that was withdrawn keeps its place, empty in the eyes of the planner, until the head of the queue gets
 * there or the ring is full: then all empty places are cleared, and the ring grows only if more than half of it is left.
 * So withdrawing needs no lock, and requests that are withdrawn at once, however many, do not fill the memory.
 */
final class RequestRing implements QueueView {
    private static final int INITIAL_CAPACITY = 16;

    private final EqualInputs equalInputs;
    private @Nullable ScheduledRequest[] places = new @Nullable ScheduledRequest[INITIAL_CAPACITY];
    private int head;
    private int length;
    private long items;

    RequestRing(EqualInputs equalInputs) {
        this.equalInputs = equalInputs;
    }

    @Override
    public int length() {
        return length;
    }

    @Override
    public int items(int index, long nowNanos) {
        ScheduledRequest request = get(index);
        return request.isWaiting() && !request.isExpired(nowNanos)
                ? request.call().batchSize()
                : 0;
    }

    @Override
    public long enqueuedNanos(int index) {
        return get(index).enqueuedNanos();
    }

    @Override
    public boolean joinsFirst(int index) {
        return equalInputs.join(get(0), get(index));
    }

    /** Returns the number of items at all places, those of withdrawn requests included. */
    long items() {
        return items;
    }

    /** Adds a request behind all others. */
    void add(ScheduledRequest request) {
        if (length == places.length) {
            makeRoom();
        }
        places[(head + length) & (places.length - 1)] = request;
        length++;
        items += request.call().batchSize();
    }

    /** Removes the request at the head; there must be one. */
    ScheduledRequest poll() {
        ScheduledRequest request = get(0);
        places[head] = null;
        head = (head + 1) & (places.length - 1);
        length--;
        items -= request.call().batchSize();
        return request;
    }

    /** Moves all requests elsewhere. */
    void drainTo(List<ScheduledRequest> drained) {
        while (length > 0) {
            drained.add(poll());
        }
    }

    private ScheduledRequest get(int index) {
        ScheduledRequest request = places[(head + index) & (places.length - 1)];
        if (request == null) {
            throw new IndexOutOfBoundsException("index: " + index + " (expected: below " + length + ")");
        }
        return request;
    }

    /** Clears empty places, and grows unless that frees half of the ring: each costs as much as it makes room. */
    private void makeRoom() {
        int before = length;
        int kept = 0;
        @Nullable ScheduledRequest[] live = new @Nullable ScheduledRequest[places.length * 2];
        items = 0;
        for (int i = 0; i < before; i++) {
            ScheduledRequest request = get(i);
            if (request.isWaiting()) {
                live[kept++] = request;
                items += request.call().batchSize();
            }
        }
        places = kept > before / 2 ? live : Arrays.copyOf(live, before);
        head = 0;
        length = kept;
    }
}
