package dev.nereid.scheduler;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The moments of waiting requests, the earliest at hand: a binary heap in which each knows its place, so that a request
 * that leaves the queue takes its moment along. Confined to the lock of the queue.
 */
final class DueHeap {
    private static final int INITIAL_CAPACITY = 16;

    private @Nullable Due[] places = new @Nullable Due[INITIAL_CAPACITY];
    private int size;

    int size() {
        return size;
    }

    /** Returns the earliest moment; {@code null} if there is none. */
    @Nullable
    Due peek() {
        return places[0];
    }

    void add(Due due) {
        if (size == places.length) {
            places = Arrays.copyOf(places, 2 * size);
        }
        size++;
        rise(due, size - 1);
    }

    /** Removes a moment that is in the heap. */
    void remove(Due due) {
        size--;
        Due last = get(size);
        places[size] = null;
        if (last != due) {
            sink(last, due.index);
            if (last.index == due.index) {
                rise(last, due.index);
            }
        }
    }

    /** Puts a moment at a place or, if it is earlier than those above, further up. */
    private void rise(Due due, int from) {
        int place = from;
        while (place > 0 && due.isBefore(get((place - 1) / 2))) {
            put(get((place - 1) / 2), place);
            place = (place - 1) / 2;
        }
        put(due, place);
    }

    /** Puts a moment at a place or, if it is later than those below, further down. */
    private void sink(Due due, int from) {
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

    private void put(Due due, int place) {
        places[place] = due;
        due.index = place;
    }

    private Due get(int place) {
        Due due = places[place];
        if (due == null) {
            throw new IndexOutOfBoundsException("place: " + place + " (expected: below " + size + ")");
        }
        return due;
    }
}
