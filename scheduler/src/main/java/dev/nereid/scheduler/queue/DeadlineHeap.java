package dev.nereid.scheduler.queue;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** A binary heap of deadlines, the earliest first. Confined to the lock of the queue. */
final class DeadlineHeap {
    private static final int INITIAL_CAPACITY = 16;

    private @Nullable Deadline[] heap = new @Nullable Deadline[INITIAL_CAPACITY];
    private int size;

    int size() {
        return size;
    }

    /** Returns the earliest deadline; {@code null} if there is none. */
    @Nullable
    Deadline peek() {
        return heap[0];
    }

    void add(Deadline deadline) {
        if (size == heap.length) {
            heap = Arrays.copyOf(heap, 2 * size);
        }
        size++;
        rise(deadline, size - 1);
    }

    /** Removes a deadline that is in the heap. */
    void remove(Deadline deadline) {
        size--;
        Deadline last = get(size);
        heap[size] = null;
        if (last != deadline) {
            sink(last, deadline.index);
            if (last.index == deadline.index) {
                rise(last, deadline.index);
            }
        }
    }

    /** Puts a deadline at an index or further up. It goes up if it is earlier than its ancestors. */
    private void rise(Deadline deadline, int from) {
        int index = from;
        while (index > 0 && deadline.isBefore(get((index - 1) / 2))) {
            put(get((index - 1) / 2), index);
            index = (index - 1) / 2;
        }
        put(deadline, index);
    }

    /** Puts a deadline at an index or further down. It goes down if it is later than its descendants. */
    private void sink(Deadline deadline, int from) {
        int index = from;
        for (int child = earlierChild(index);
                child < size && get(child).isBefore(deadline);
                child = earlierChild(index)) {
            put(get(child), index);
            index = child;
        }
        put(deadline, index);
    }

    private int earlierChild(int index) {
        int left = 2 * index + 1;
        return left + 1 < size && get(left + 1).isBefore(get(left)) ? left + 1 : left;
    }

    private void put(Deadline deadline, int index) {
        heap[index] = deadline;
        deadline.index = index;
    }

    private Deadline get(int index) {
        Deadline deadline = heap[index];
        if (deadline == null) {
            throw new IndexOutOfBoundsException("index: " + index + " (expected: below " + size + ")");
        }
        return deadline;
    }
}
