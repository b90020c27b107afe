package dev.nereid.backend.onnx.ort;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the native value of one input or output between runs. Recreates it only when memory or shape change. Confined
 * to the user of its execution.
 */
final class TensorSlot {
    private final OrtLibrary library;
    private final OrtScratch scratch;
    private final OrtTensorInfo info;

    /** The handle, 0 if there is none, and behind it the kind of memory, the memory and the shape. */
    private long value;

    private long place;
    private long address;
    private long byteSize;
    private long[] shape = {};

    /** The memory of the present run, kept from the garbage collector. It is null while the slot is not set. */
    private @Nullable MemorySegment memory;

    private MemorySegment alignedCopy = MemorySegment.NULL;

    TensorSlot(OrtLibrary library, OrtScratch scratch, OrtTensorInfo info) {
        this.library = library;
        this.scratch = scratch;
        this.info = info;
    }

    /**
     * Sets {@code data} as an input, without a copy. Only data that is not aligned for its element type is copied.
     *
     * @throws IllegalArgumentException if {@code data} is not native memory, or its size is not that of the shape
     */
    void setInput(MemorySegment data, long[] dims) throws OrtException {
        if (info.type() == OrtElementType.STRING) {
            setStrings(data, dims);
            return;
        }
        boolean aligned = data.address() % info.type().alignment() == 0;
        wrap(library.cpuMemory(), aligned || !data.isNative() ? data : copyAligned(data), dims);
    }

    /**
     * Takes {@code target} as the memory that an output is to be written into.
     *
     * @throws IllegalArgumentException if {@code target} is not native, aligned memory, or its size is not that of the
     *     shape, or the output holds strings
     */
    void setOutput(MemorySegment target, long[] dims) throws OrtException {
        if (target.address() % info.type().alignment() != 0) {
            throw new IllegalArgumentException(named() + "address " + target.address() + " (expected: a multiple of "
                    + info.type().alignment() + ")");
        }
        if (target.isReadOnly()) {
            throw new IllegalArgumentException(named() + "read-only memory (expected: writable memory)");
        }
        wrap(library.cpuMemory(), target, dims);
    }

    /**
     * Takes memory of a device as an input, without a copy, or for an output to be written into.
     *
     * @param device the handle that describes memory of the device
     * @throws IllegalArgumentException if {@code data} is not aligned as ONNX Runtime's own memory of a device, or its
     *     size is not that of the shape, or the tensor holds strings
     */
    void setOnDevice(long device, MemorySegment data, long[] dims) throws OrtException {
        if (data.address() % OrtProviders.ALIGNMENT != 0) {
            throw new IllegalArgumentException(named() + "address " + data.address() + " (expected: a multiple of "
                    + OrtProviders.ALIGNMENT + ")");
        }
        wrap(device, data, dims);
    }

    private void wrap(long memoryPlace, MemorySegment data, long[] dims) throws OrtException {
        long needed = info.type().byteSize(dims);
        if (!data.isNative()) {
            throw new IllegalArgumentException(named() + "memory on the heap (expected: native memory)");
        }
        if (data.byteSize() != needed) {
            throw new IllegalArgumentException(named() + data.byteSize() + " bytes (expected: " + needed + " for "
                    + info.type() + " " + Arrays.toString(dims) + ")");
        }
        memory = data;
        // A tensor without elements needs an address all the same, and any will do.
        long start = needed == 0 ? scratch.resultAddress(0) : data.address();
        long actualPlace = needed == 0 ? library.cpuMemory() : memoryPlace;
        if (value != 0
                && actualPlace == place
                && start == address
                && needed == byteSize
                && Arrays.equals(shape, dims)) {
            return;
        }
        releaseValue();
        place = actualPlace;
        create(start, needed, dims);
    }

    private void create(long start, long bytes, long[] dims) throws OrtException {
        if (dims.length <= OrtScratch.USUAL_RANK) {
            createWith(scratch.shape(dims), start, bytes, dims);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            createWith(OrtScratch.shape(dims, arena), start, bytes, dims);
        }
    }

    private void createWith(long nativeDims, long start, long bytes, long[] dims) throws OrtException {
        OrtApi api = library.api();
        int type = info.type().number();
        if (info.type() == OrtElementType.STRING) {
            OrtFunction function = OrtFunction.CreateTensorAsOrtValue;
            api.call(function, library.allocator(), nativeDims, dims.length, type, scratch.resultAddress(0));
        } else {
            api.wrapTensor(place, start, bytes, nativeDims, dims.length, type, scratch.resultAddress(0));
        }
        value = scratch.result(0);
        address = start;
        byteSize = bytes;
        shape = dims.clone();
    }

    /** Copies strings into a value of ONNX Runtime's own. The value is kept while the shape stays the same. */
    private void setStrings(MemorySegment data, long[] dims) throws OrtException {
        long count = OrtElementType.elementCount(dims);
        memory = data;
        if (value == 0 || !Arrays.equals(shape, dims)) {
            releaseValue();
            create(0, 0, dims);
        }
        OrtStrings.fill(library.api(), value, count, data, scratch);
    }

    private MemorySegment copyAligned(MemorySegment data) {
        if (alignedCopy.byteSize() < data.byteSize()) {
            // Freed by the garbage collector: it grows rarely, and lives about as long as the slot.
            alignedCopy = Arena.ofAuto().allocate(data.byteSize(), Long.BYTES);
        }
        return alignedCopy.asSlice(0, data.byteSize()).copyFrom(data);
    }

    /** Returns whether memory was set for the current run. */
    boolean isSet() {
        return memory != null;
    }

    /** Throws if there is no data, unless the model declares this input optional. */
    void requireOptional() throws OrtException {
        if (info.kind() != OrtTensorInfo.Kind.OPTIONAL) {
            throw new OrtException(OrtErrorCode.INVALID_ARGUMENT, named() + "no data (expected: data for every input)");
        }
    }

    long value() {
        return value;
    }

    /** Drops the memory of the current run. The value stays for the next one, which may use the same memory. */
    void unset() {
        memory = null;
    }

    void releaseValue() {
        if (value != 0) {
            library.api().release(OrtFunction.ReleaseValue, value);
            value = 0;
        }
    }

    private String named() {
        return "'" + info.name() + "': ";
    }
}
