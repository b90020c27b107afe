package dev.nereid.server.classification;

import java.lang.foreign.MemorySegment;

/**
 * Finds the largest elements of an array. Confined to one call.
 *
 * <p>A heap of those found so far, the least of them at the root, so that an array is read once whatever its size.
 */
final class LargestElements {
    private final Scores scores;
    private final MemorySegment data;
    private final int[] heap;
    private int size;

    private LargestElements(Scores scores, MemorySegment data, int wanted) {
        this.scores = scores;
        this.data = data;
        this.heap = new int[wanted];
    }

    /**
     * Finds the largest elements.
     *
     * @param count how many elements the array has
     * @param wanted how many to find, at most {@code count}
     * @return their indices, the largest element first, of equal ones the first
     */
    static int[] find(Scores scores, MemorySegment data, int count, int wanted) {
        LargestElements largest = new LargestElements(scores, data, wanted);
        for (int index = 0; index < count && wanted > 0; index++) {
            largest.offer(index);
        }
        return largest.descending();
    }

    private void offer(int index) {
        if (size < heap.length) {
            heap[size] = index;
            rise(size);
            size++;
        } else if (isLess(heap[0], index)) {
            heap[0] = index;
            sink();
        }
    }

    /** Takes the least again and again, and so empties the heap. */
    private int[] descending() {
        int[] found = new int[size];
        while (size > 0) {
            size--;
            found[size] = heap[0];
            heap[0] = heap[size];
            sink();
        }
        return found;
    }

    private void rise(int from) {
        int at = from;
        while (at > 0 && isLess(heap[at], heap[(at - 1) / 2])) {
            swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    private void sink() {
        int at = 0;
        while (true) {
            int least = at;
            for (int child = 2 * at + 1; child <= 2 * at + 2 && child < size; child++) {
                if (isLess(heap[child], heap[least])) {
                    least = child;
                }
            }
            if (least == at) {
                return;
            }
            swap(at, least);
            at = least;
        }
    }

    private void swap(int one, int other) {
        int kept = heap[one];
        heap[one] = heap[other];
        heap[other] = kept;
    }

    private boolean isLess(int one, int other) {
        int order = Long.compare(scores.rank(data, one), scores.rank(data, other));
        return order == 0 ? one > other : order < 0;
    }
}
