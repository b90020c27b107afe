package dev.nereid.scheduler.queue;

import java.util.ArrayList;
import org.jspecify.annotations.Nullable;

/**
 * A binary heap of deadlines, the earliest first. Confined to the lock of the queue.
 *
 * @param <T> what waits
 */
public final class DeadlineHeap<T> {
    private final ArrayList<Deadline<T>> heap = new ArrayList<>(0);

    /** Creates an empty heap. */
    public DeadlineHeap() {}

    int size() {
        return heap.size();
    }

    /** Returns the earliest deadline; {@code null} if there is none. */
    public @Nullable Deadline<T> peek() {
        return heap.isEmpty() ? null : heap.getFirst();
    }

    public void add(Deadline<T> deadline) {
        heap.add(deadline);
        rise(deadline, heap.size() - 1);
    }

    /** Removes a deadline, if it is in the heap. */
    public void remove(@Nullable Deadline<T> deadline) {
        if (deadline == null || deadline.index < 0) {
            return;
        }
        int index = deadline.index;
        deadline.index = -1;
        Deadline<T> last = heap.removeLast();
        if (last != deadline) {
            sink(last, index);
            rise(last, last.index);
        }
    }

    /** Puts a deadline at an index or further up. It goes up if it is earlier than its ancestors. */
    private void rise(Deadline<T> deadline, int from) {
        int index = from;
        while (index > 0 && deadline.isBefore(heap.get((index - 1) / 2))) {
            put(heap.get((index - 1) / 2), index);
            index = (index - 1) / 2;
        }
        put(deadline, index);
    }

    /** Puts a deadline at an index or further down. It goes down if it is later than its descendants. */
    private void sink(Deadline<T> deadline, int from) {
        int index = from;
        int child = earlierChild(index);
        while (child < heap.size() && heap.get(child).isBefore(deadline)) {
            put(heap.get(child), index);
            index = child;
            child = earlierChild(index);
        }
        put(deadline, index);
    }

    private int earlierChild(int index) {
        int left = 2 * index + 1;
        return left + 1 < heap.size() && heap.get(left + 1).isBefore(heap.get(left)) ? left + 1 : left;
    }

    private void put(Deadline<T> deadline, int index) {
        heap.set(index, deadline);
        deadline.index = index;
    }
}
