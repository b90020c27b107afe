package dev.nereid.backend.tensorrt.runtime;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;

/**
 * How an engine is built. Immutable.
 *
 * @param onnx the model's file
 * @param precision {@code FP32}, {@code FP16}, {@code BF16}
 * @param workspaceBytes the memory that the builder may use on the device; 0 for no limit
 * @param ranges the limits of inputs with variable dimensions, by name, for the one profile
 */
public record BuildRequest(Path onnx, String precision, long workspaceBytes, Map<String, ProfileRange> ranges) {
    public BuildRequest {
        ranges = Map.copyOf(ranges);
    }

    /** Returns the settings as text, in an order that does not change, for the key of a cache. */
    public String key() {
        return precision + ";" + workspaceBytes + ";" + new TreeMap<>(ranges);
    }
}
