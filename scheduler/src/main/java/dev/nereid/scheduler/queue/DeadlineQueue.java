package dev.nereid.scheduler.queue;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** A binary heap of deadlines, the earliest first. Confined to the lock of the queue. */
final class DeadlineQueue {
    private static final int INITIAL_CAPACITY = 16;

    private @Nullable Deadline[] places = new @Nullable Deadline[INITIAL_CAPACITY];
    private int size;

    int size() {
        return size;
    }

    /** Returns the earliest moment; {@code null} if there is none. */
    @Nullable
    Deadline peek() {
        return places[0];
    }

    void add(Deadline due) {
        if (size == places.length) {
            places = Arrays.copyOf(places, 2 * size);
        }
        size++;
        rise(due, size - 1);
    }

    /** Removes a moment that is in the heap. */
    void remove(Deadline due) {
        size--;
        Deadline last = get(size);
        places[size] = null;
        if (last != due) {
            sink(last, due.index);
            if (last.index == due.index) {
                rise(last, due.index);
            }
        }
    }

    /** Puts a moment at a place or, if it is earlier than those above, further up. */
    private void rise(Deadline due, int from) {
        int place = from;
        while (place > 0 && due.isBefore(get((place - 1) / 2))) {
            put(get((place - 1) / 2), place);
            place = (place - 1) / 2;
        }
        put(due, place);
    }

    /** Puts a moment at a place or, if it is later than those below, further down. */
    private void sink(Deadline due, int from) {
        int place = from;
        for (int child = earlierChild(place); child < size && get(child).isBefore(due); child = earlierChild(place)) {
            put(get(child), place);
            place = child;
        }
        put(due, place);
    }

    private int earlierChild(int place) {
        int left = 2 * place + 1;
        return left + 1 < size && get(left + 1).isBefore(get(left)) ? left + 1 : left;
    }

    private void put(Deadline due, int place) {
        places[place] = due;
        due.index = place;
    }

    private Deadline get(int place) {
        Deadline due = places[place];
        if (due == null) {
            throw new IndexOutOfBoundsException("place: " + place + " (expected: below " + size + ")");
        }
        return due;
    }
}
