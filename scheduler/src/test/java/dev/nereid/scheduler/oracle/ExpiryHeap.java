package dev.nereid.scheduler.oracle;

import java.util.ArrayList;
import org.jspecify.annotations.Nullable;

/** A binary heap, the earliest expiry first. Guarded by the lock of the sequences. */
final class ExpiryHeap {
    private final ArrayList<Expiry> heap = new ArrayList<>(0);

    @Nullable
    Expiry peek() {
        return heap.isEmpty() ? null : heap.getFirst();
    }

    void add(Expiry expiry) {
        heap.add(expiry);
        rise(expiry, heap.size() - 1);
    }

    /** Removes an expiry, if it is in the heap. */
    void remove(@Nullable Expiry expiry) {
        if (expiry == null || expiry.index < 0) {
            return;
        }
        int index = expiry.index;
        expiry.index = -1;
        Expiry last = heap.removeLast();
        if (last != expiry) {
            sink(last, index);
            rise(last, last.index);
        }
    }

    private void rise(Expiry expiry, int from) {
        int index = from;
        while (index > 0 && expiry.isBefore(heap.get((index - 1) / 2))) {
            put(heap.get((index - 1) / 2), index);
            index = (index - 1) / 2;
        }
        put(expiry, index);
    }

    private void sink(Expiry expiry, int from) {
        int index = from;
        int child = earlierChild(index);
        while (child < heap.size() && heap.get(child).isBefore(expiry)) {
            put(heap.get(child), index);
            index = child;
            child = earlierChild(index);
        }
        put(expiry, index);
    }

    private int earlierChild(int index) {
        int left = 2 * index + 1;
        return left + 1 < heap.size() && heap.get(left + 1).isBefore(heap.get(left)) ? left + 1 : left;
    }

    private void put(Expiry expiry, int index) {
        heap.set(index, expiry);
        expiry.index = index;
    }
}
