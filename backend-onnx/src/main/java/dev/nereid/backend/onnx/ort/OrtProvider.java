package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * An execution provider of a session. Immutable.
 *
 * @param options its options by ONNX Runtime's own keys, such as {@code gpu_mem_limit}; {@code device_id} has no effect,
 *     since {@link OrtProviders} has the device
 */
public record OrtProvider(Kind kind, Map<String, String> options) {
    /** The execution providers that this binding can add. */
    public enum Kind {
        /** TensorRT, which compiles parts of a graph for the device. */
        TENSORRT(
                "TensorrtExecutionProvider",
                OrtFunction.CreateTensorRTProviderOptions,
                OrtFunction.UpdateTensorRTProviderOptions,
                OrtFunction.SessionOptionsAppendExecutionProvider_TensorRT_V2,
                OrtFunction.ReleaseTensorRTProviderOptions),
        /** CUDA, which runs a graph operator by operator. */
        CUDA(
                "CUDAExecutionProvider",
                OrtFunction.CreateCUDAProviderOptions,
                OrtFunction.UpdateCUDAProviderOptions,
                OrtFunction.SessionOptionsAppendExecutionProvider_CUDA_V2,
                OrtFunction.ReleaseCUDAProviderOptions);

        private final String providerName;
        private final OrtFunction create;
        private final OrtFunction update;
        private final OrtFunction append;
        private final OrtFunction release;

        Kind(String providerName, OrtFunction create, OrtFunction update, OrtFunction append, OrtFunction release) {
            this.providerName = providerName;
            this.create = create;
            this.update = update;
            this.append = append;
            this.release = release;
        }

        /** Returns the name among {@link OrtLibrary#providers()}. */
        public String providerName() {
            return providerName;
        }
    }

    private static final String DEVICE_ID = "device_id";

    public OrtProvider {
        options = Map.copyOf(options);
    }

    /** Adds the provider, with its options and {@code device}, to the options of a session. */
    void append(OrtLibrary library, long sessionOptions, int device) throws OrtException {
        OrtApi api = library.api();
        SortedMap<String, String> all = new TreeMap<>(options);
        all.put(DEVICE_ID, Integer.toString(device));
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(JAVA_LONG);
            api.call(kind.create, out.address());
            long handle = out.get(JAVA_LONG, 0);
            try {
                long keys = CStrings.writeAll(scratch, all.keySet());
                long values = CStrings.writeAll(scratch, all.values());
                api.call(kind.update, handle, keys, values, all.size());
                api.call(kind.append, sessionOptions, handle);
            } finally {
                api.release(kind.release, handle);
            }
        }
    }
}
