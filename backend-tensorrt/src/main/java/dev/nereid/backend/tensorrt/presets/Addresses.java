package dev.nereid.backend.tensorrt.presets;

import dev.nereid.spi.Shape;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.tensorrt.nvinfer.Dims64;
import org.jspecify.annotations.Nullable;

/** Conversions between addresses, shapes and the types of the presets. Static functions only. */
final class Addresses {
    /** A failing call may return an offset from null. */
    private static final long LOWEST = 4096;

    private Addresses() {}

    /** Returns whether a pointer points to an object: null and offsets from null do not. */
    static boolean isObject(@Nullable Pointer pointer) {
        return pointer != null && Long.compareUnsigned(pointer.address(), LOWEST) >= 0;
    }

    static Pointer of(long address) {
        return new At(address);
    }

    static CUstream_st stream(long stream) {
        return new CUstream_st(new At(stream));
    }

    static Dims64 dims(Shape shape) {
        Dims64 dims = new Dims64();
        dims.nbDims(shape.rank());
        for (int i = 0; i < shape.rank(); i++) {
            dims.d(i, shape.dim(i));
        }
        return dims;
    }

    static Shape shape(Dims64 dims) {
        long[] sizes = new long[Math.max(0, dims.nbDims())];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = dims.d(i);
        }
        return Shape.of(sizes);
    }

    /** Memory that somebody else owns. */
    private static final class At extends Pointer {
        At(long location) {
            address = location;
        }
    }
}
