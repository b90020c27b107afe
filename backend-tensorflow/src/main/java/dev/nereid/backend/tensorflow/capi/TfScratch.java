package dev.nereid.backend.tensorflow.capi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Native memory for the arguments of a run: tensors fed and fetched, their places in the graph, shapes. Confined to the
 * user of its execution.
 */
final class TfScratch {
    /** {@code struct TF_Output}: a pointer, an int, and padding. */
    private static final long PORT_BYTES = 16;

    /** Dimensions that fit without an allocation. */
    private static final int USUAL_RANK = 16;

    private final MemorySegment ports;
    private final MemorySegment values;
    private MemorySegment shape;

    /** Creates memory for {@code count} tensors. It is freed by the garbage collector. */
    TfScratch(int count) {
        Arena arena = Arena.ofAuto();
        ports = arena.allocate(PORT_BYTES * Math.max(1, count), Long.BYTES);
        values = arena.allocate(JAVA_LONG, Math.max(1, count));
        shape = arena.allocate(JAVA_LONG, USUAL_RANK);
    }

    /** Sets the place of tensor {@code index}. */
    void port(int index, TfPort port) {
        ports.set(JAVA_LONG, index * PORT_BYTES, port.operation());
        ports.set(JAVA_INT, index * PORT_BYTES + Long.BYTES, port.index());
    }

    long portsAddress() {
        return ports.address();
    }

    void value(int index, long handle) {
        values.setAtIndex(JAVA_LONG, index, handle);
    }

    long value(int index) {
        return values.getAtIndex(JAVA_LONG, index);
    }

    long valuesAddress() {
        return values.address();
    }

    /** Writes {@code dims} where C finds them until the next call; returns their address. */
    long shape(long[] dims) {
        if (dims.length * JAVA_LONG.byteSize() > shape.byteSize()) {
            shape = Arena.ofAuto().allocate(JAVA_LONG, dims.length);
        }
        for (int i = 0; i < dims.length; i++) {
            shape.setAtIndex(JAVA_LONG, i, dims[i]);
        }
        return shape.address();
    }
}
