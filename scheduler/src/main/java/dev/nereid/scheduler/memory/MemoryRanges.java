package dev.nereid.scheduler.memory;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Compares address ranges of tensors. Reads no memory, so that it may lie anywhere. Static functions only. */
public final class MemoryRanges {
    private MemoryRanges() {}

    /** Returns whether a tensor lies in the memory of one of some others, in whole or in part. */
    public static boolean overlap(List<NamedTensor> tensors, Tensor tensor) {
        for (int i = 0; i < tensors.size(); i++) {
            if (overlap(tensors.get(i).tensor(), tensor)) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether a tensor lies in the memory of one of some others as a whole. */
    public static boolean contain(List<NamedTensor> tensors, Tensor tensor) {
        MemorySegment inner = tensor.data();
        for (int i = 0; i < tensors.size(); i++) {
            MemorySegment outer = tensors.get(i).tensor().data();
            if (outer.address() <= inner.address()
                    && inner.address() + inner.byteSize() <= outer.address() + outer.byteSize()) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns whether a tensor lies in the memory of another one, in whole or in part. This includes an empty tensor at
     * an end of that memory, since its segment is valid no longer than the memory.
     */
    public static boolean overlap(Tensor outer, Tensor inner) {
        MemorySegment one = outer.data();
        MemorySegment other = inner.data();
        long start = one.address();
        long end = start + one.byteSize();
        long innerStart = other.address();
        long innerEnd = innerStart + other.byteSize();
        return innerStart == innerEnd ? start <= innerStart && innerStart <= end : start < innerEnd && innerStart < end;
    }
}
