package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An output in ONNX Runtime's own memory. Any thread may read and close it; it outlives the execution, the session
 * and the closing of the library.
 */
public final class OrtValue implements AutoCloseable {
    private final OrtLibrary library;
    private final long handle;
    private final OrtElementType type;
    private final long[] shape;
    private final MemorySegment data;
    private final AtomicBoolean closed = new AtomicBoolean();

    private OrtValue(OrtLibrary library, long handle, OrtElementType type, long[] shape, MemorySegment data) {
        this.library = library;
        this.handle = handle;
        this.type = type;
        this.shape = shape;
        this.data = data;
    }

    /** Takes ownership of the value {@code handle} from a user of {@code library}, unless this fails. */
    static OrtValue adopt(OrtLibrary library, long handle, OrtScratch scratch) throws OrtException {
        OrtApi api = library.api();
        api.shortCall(
                OrtFunction.GetTensorElementTypeAndShapeDataReference,
                handle,
                scratch.resultAddress(0),
                scratch.resultAddress(1),
                scratch.resultAddress(2));
        OrtElementType type = OrtElementType.of(scratch.intResult(0));
        long[] shape = longs(scratch.result(1), scratch.result(2));
        MemorySegment data = MemorySegment.NULL;
        if (type.hasFixedSize()) {
            api.shortCall(OrtFunction.GetTensorMutableData, handle, scratch.resultAddress(0));
            data = memory(scratch.result(0), type.byteSize(shape));
        }
        library.references().retainAgain();
        return new OrtValue(library, handle, type, shape, data);
    }

    OrtElementType type() {
        return type;
    }

    /** Returns a copy of the shape; empty for a scalar. */
    public long[] shape() {
        return shape.clone();
    }

    /** Returns the elements without a copy, valid until the close. Strings are read by {@link #copyStrings} instead. */
    public MemorySegment data() {
        requireOpen();
        return data;
    }

    /** Returns the bytes that {@link #copyStrings} writes. */
    public long stringBytes() throws OrtException {
        requireOpen();
        return OrtStrings.byteSize(library.api(), handle, OrtElementType.elementCount(shape));
    }

    /** Writes the strings of a string tensor, each preceded by its length in 4 bytes, little-endian. */
    public void copyStrings(MemorySegment target) throws OrtException {
        requireOpen();
        OrtStrings.copy(library.api(), handle, OrtElementType.elementCount(shape), target);
    }

    /** Frees the memory. Further calls do nothing. Must not be called while another thread reads. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            library.api().release(OrtFunction.ReleaseValue, handle);
            library.references().release();
        }
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("value: closed (expected: open)");
        }
    }

    private static long[] longs(long address, long count) {
        return count == 0
                ? new long[0]
                : memory(address, count * JAVA_LONG.byteSize()).toArray(JAVA_LONG);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
