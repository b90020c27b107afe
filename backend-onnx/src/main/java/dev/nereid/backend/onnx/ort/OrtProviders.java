package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Execution providers of a session besides the CPU, all of one CUDA device. Immutable.
 *
 * <p>ONNX Runtime gives each part of a graph to the first provider that can compute it, and the other parts to the CPU.
 *
 * @param device the number of the device that the session takes memory of, from 0, as CUDA counts the devices that are
 *     visible to the process; {@link #NO_DEVICE} for a session that takes memory of the host alone
 * @param all the providers, in the order of their priority; empty for a session that computes on the CPU alone
 */
public record OrtProviders(int device, List<OrtProvider> all) {
    /** In place of the number of a device. */
    static final int NO_DEVICE = -1;

    /** No providers but the CPU. */
    public static final OrtProviders CPU = new OrtProviders(NO_DEVICE, List.of());

    /**
     * The alignment in bytes of memory of a device that is passed to a session. ONNX Runtime aligns its own memory so,
     * and TensorRT requires it; a read that is not aligned for its kernel fails the device for the rest of the process.
     */
    public static final int ALIGNMENT = 256;

    /** ONNX Runtime's name of memory of a CUDA device. */
    private static final String MEMORY_NAME = "Cuda";

    /** The header's {@code OrtDeviceAllocator} and {@code OrtMemTypeDefault}. */
    private static final long DEVICE_ALLOCATOR = 0;

    private static final long DEFAULT_MEMORY = 0;

    public OrtProviders {
        all = List.copyOf(all);
        if (device < (all.isEmpty() ? NO_DEVICE : 0)) {
            throw new IllegalArgumentException("device: " + device + " (expected: >= 0)");
        }
    }

    /**
     * Adds the providers to the options of a session.
     *
     * @param options ONNX Runtime's options object
     * @throws OrtException if the library was built without one, refuses an option, or finds no library that one needs
     */
    void append(OrtLibrary library, long options) throws OrtException {
        for (OrtProvider provider : all) {
            try {
                provider.append(library, options, device);
            } catch (OrtException e) {
                throw new OrtException(e.code(), library.withoutDirectory(String.valueOf(e.getMessage())));
            }
        }
    }

    /** Creates a handle that describes memory of the device, which the caller releases; 0 without a device. */
    long memory(OrtLibrary library) throws OrtException {
        if (device == NO_DEVICE) {
            return 0;
        }
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(JAVA_LONG);
            long name = CStrings.write(scratch, MEMORY_NAME);
            OrtFunction function = OrtFunction.CreateMemoryInfo;
            library.api().call(function, name, DEVICE_ALLOCATOR, device, DEFAULT_MEMORY, out.address());
            return out.get(JAVA_LONG, 0);
        }
    }

    /** Refuses the handle of a tensor on a device: Java code that read it would crash the process. */
    static void requireHost(OrtApi api, long value, OrtScratch scratch) throws OrtException {
        String place = place(api, value, scratch);
        if (place.startsWith(MEMORY_NAME + " ")) {
            throw new IllegalStateException("output: lies in memory of " + place + " (expected: on the host)");
        }
    }

    /** Returns where a tensor lies: ONNX Runtime's name of the memory, such as {@code CudaPinned}, and the device. */
    static String place(OrtApi api, long value, OrtScratch scratch) throws OrtException {
        api.call(OrtFunction.GetTensorMemoryInfo, value, scratch.resultAddress(0));
        long info = scratch.result(0);
        api.call(OrtFunction.MemoryInfoGetName, info, scratch.resultAddress(1));
        api.call(OrtFunction.MemoryInfoGetId, info, scratch.resultAddress(2));
        return CStrings.read(scratch.result(1)) + " " + scratch.intResult(2);
    }
}
