package dev.nereid.backend.tensorflow.capi;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An output in TensorFlow's own memory, or in that of an input. Any thread may read and close it; it outlives the
 * execution, the session and the closing of the library.
 */
public final class TfTensor implements AutoCloseable {
    private final TfLibrary library;
    private final long handle;
    private final TfDataType type;
    private final long[] shape;
    private final MemorySegment data;
    private final AtomicBoolean closed = new AtomicBoolean();

    private TfTensor(TfLibrary library, long handle, TfDataType type, long[] shape, MemorySegment data) {
        this.library = library;
        this.handle = handle;
        this.type = type;
        this.shape = shape;
        this.data = data;
    }

    /** Takes ownership of the tensor {@code handle} from a user of {@code library}. */
    static TfTensor adopt(TfLibrary library, long handle) {
        TfApi api = library.api();
        TfDataType type = TfDataType.of(api.shortNumber(TfFunction.TensorType, handle));
        long[] shape = new long[api.shortNumber(TfFunction.NumDims, handle)];
        for (int i = 0; i < shape.length; i++) {
            shape[i] = api.shortPointer(TfFunction.Dim, handle, i);
        }
        long byteSize = api.shortPointer(TfFunction.TensorByteSize, handle);
        MemorySegment data =
                byteSize == 0 ? MemorySegment.NULL : memory(api.shortPointer(TfFunction.TensorData, handle), byteSize);
        library.references().retainAgain();
        return new TfTensor(library, handle, type, shape, data);
    }

    public TfDataType type() {
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
    public long stringBytes() {
        requireOpen();
        return TfStrings.byteSize(library.api(), data);
    }

    /** Writes the strings of a string tensor, each preceded by its length in 4 bytes, little-endian. */
    public void copyStrings(MemorySegment target) {
        requireOpen();
        TfStrings.copy(library.api(), data, target);
    }

    /** Frees the memory. Further calls do nothing. Must not be called while another thread reads. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            library.api().call(TfFunction.DeleteTensor, handle);
            library.references().release();
        }
    }

    private void requireOpen() {
        if (closed.get()) {
            throw new IllegalStateException("tensor: closed (expected: open)");
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
