package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Native memory for small results and arguments of function calls. Confined to the user of its execution. */
final class OrtScratch {
    private static final int RESULTS = 3;
    private static final int SHAPE_START = RESULTS;
    /** Dimensions that fit without an allocation. */
    static final int USUAL_RANK = 16;

    private final MemorySegment longs;
    private final long address;

    OrtScratch(Arena arena) {
        longs = arena.allocate(JAVA_LONG, RESULTS + USUAL_RANK);
        address = longs.address();
    }

    /** Returns the address for result {@code index}, 0 to 2. */
    long resultAddress(int index) {
        return address + index * JAVA_LONG.byteSize();
    }

    /** Returns the pointer or size that a call wrote as result {@code index}. */
    long result(int index) {
        return longs.getAtIndex(JAVA_LONG, index);
    }

    /** Returns the enum that a call wrote as result {@code index}. */
    int intResult(int index) {
        return longs.get(JAVA_INT, index * JAVA_LONG.byteSize());
    }

    /** Writes {@code shape}, of {@link #USUAL_RANK} at most, where C finds it; returns its address. */
    long shape(long[] shape) {
        for (int i = 0; i < shape.length; i++) {
            longs.setAtIndex(JAVA_LONG, SHAPE_START + i, shape[i]);
        }
        return address + SHAPE_START * JAVA_LONG.byteSize();
    }

    /** Writes a {@code shape} of any rank for C, and returns its address. It lives as long as {@code arena}. */
    static long shape(long[] shape, Arena arena) {
        return arena.allocateFrom(JAVA_LONG, shape).address();
    }
}
