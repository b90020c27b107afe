package dev.nereid.grpc.wire;

import dev.nereid.api.InputTensor;
import java.util.Arrays;

/** The dimensions of an input as received, unchecked. Confined to one thread at a time. */
final class Dims {
    private static final int INITIAL_RANK = 4;
    private static final long[] NONE = {};

    private long[] values = NONE;
    private int rank;

    /**
     * Adds an inner dimension.
     *
     * @param input the name of the input, for the error; empty if it was not read yet
     * @throws dev.nereid.api.InferenceException if the rank exceeds the maximum
     */
    void add(String input, long dim) {
        InputTensor.checkRank(input, rank + 1);
        if (rank == values.length) {
            values = Arrays.copyOf(values, Math.max(INITIAL_RANK, 2 * rank));
        }
        values[rank++] = dim;
    }

    /** Returns the dimensions, outermost first, in an array that callers do not change. */
    long[] toArray() {
        if (rank < values.length) {
            values = Arrays.copyOf(values, rank);
        }
        return values;
    }
}
