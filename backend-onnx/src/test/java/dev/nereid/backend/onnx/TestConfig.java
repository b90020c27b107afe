package dev.nereid.backend.onnx;

import java.util.Map;
import java.util.stream.Collectors;

/** Writes configurations as JSON. Static functions only. */
final class TestConfig {
    private TestConfig() {}

    /** Returns a configuration with accelerators of GPUs. */
    static String gpu(String... accelerators) {
        return accelerators("gpu", accelerators);
    }

    /** Returns a configuration with accelerators of the CPU. */
    static String cpu(String... accelerators) {
        return accelerators("cpu", accelerators);
    }

    private static String accelerators(String kind, String... accelerators) {
        return "{\"optimization\":{\"execution_accelerators\":{\"" + kind + "_execution_accelerator\":["
                + String.join(",", accelerators) + "]}}}";
    }

    /** Returns an accelerator. */
    static String accelerator(String name, Map<String, String> parameters) {
        return parameters.entrySet().stream()
                .map(entry -> text(entry.getKey()) + ":" + text(entry.getValue()))
                .collect(Collectors.joining(",", "{\"name\":" + text(name) + ",\"parameters\":{", "}}"));
    }

    /** Returns a configuration with a level of optimization. */
    static String graphLevel(int level) {
        return "{\"optimization\":{\"graph\":{\"level\":" + level + "}}}";
    }

    /** Returns a configuration with a library of operators. */
    static String operatorLibrary(String filename) {
        return "{\"model_operations\":{\"op_library_filename\":[" + text(filename) + "]}}";
    }

    private static String text(String value) {
        return "\"" + value + "\"";
    }
}
