package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.nereid.backend.natives.CStrings;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;

/** Creates ONNX Runtime's run options. Stateless. */
final class OrtRunOptions {
    private OrtRunOptions() {}

    /** Creates run options with {@code config} by ONNX Runtime's own keys; the caller releases them. */
    static long create(OrtApi api, Map<String, String> config) throws OrtException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(JAVA_LONG);
            api.call(OrtFunction.CreateRunOptions, out.address());
            long options = out.get(JAVA_LONG, 0);
            try {
                for (Map.Entry<String, String> entry : config.entrySet()) {
                    long key = CStrings.write(arena, entry.getKey());
                    long value = CStrings.write(arena, entry.getValue());
                    api.call(OrtFunction.AddRunConfigEntry, options, key, value);
                }
                return options;
            } catch (OrtException | RuntimeException e) {
                api.release(OrtFunction.ReleaseRunOptions, options);
                throw e;
            }
        }
    }
}
