package dev.nereid.server.classification;

import java.lang.foreign.MemorySegment;

/**
 * Finds the largest elements of an array. Confined to one search.
 *
 * <p>A heap of the largest elements so far, the smallest of them at the root, so that an array is read once whatever
 * its size.
 */
final class LargestElements {
    private final Scores scores;
    private final MemorySegment data;
    private final int[] heap;
    private int size;

    private LargestElements(Scores scores, MemorySegment data, int limit) {
        this.scores = scores;
        this.data = data;
        this.heap = new int[limit];
    }

    /**
     * Finds the largest elements.
     *
     * @param count the number of elements of the array
     * @param limit the number of elements to find, at most {@code count}
     * @return their indices, the largest element first, of equal ones the first
     */
    static int[] find(Scores scores, MemorySegment data, int count, int limit) {
        LargestElements largest = new LargestElements(scores, data, limit);
        for (int index = 0; index < count && limit > 0; index++) {
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

    /** Removes the smallest element again and again, which empties the heap. */
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
            int smallest = at;
            for (int child = 2 * at + 1; child <= 2 * at + 2 && child < size; child++) {
                if (isLess(heap[child], heap[smallest])) {
                    smallest = child;
                }
            }
            if (smallest == at) {
                return;
            }
            swap(at, smallest);
            at = smallest;
        }
    }

    private void swap(int first, int second) {
        int kept = heap[first];
        heap[first] = heap[second];
        heap[second] = kept;
    }

    private boolean isLess(int first, int second) {
        int order = Long.compare(scores.rank(data, first), scores.rank(data, second));
        return order == 0 ? first > second : order < 0;
    }
}
