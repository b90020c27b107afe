package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Shape;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Options in a configuration for this backend alone. Immutable.
 *
 * @param graphs whether executions of the same shapes are captured as graphs ({@code optimization.cuda.graphs})
 * @param priority the priority of the streams ({@code optimization.priority})
 * @param eager whether one more batch is prepared ahead ({@code optimization.eager_batching})
 * @param filenames the plans by compute capability ({@code cc_model_filenames})
 * @param onnx the model's file from which an engine is built ({@code build_from_onnx}); empty for a plan
 * @param precision the precision of the built engine ({@code build_precision})
 * @param workspaceBytes the memory of the builder ({@code build_workspace_bytes}); 0 for no limit
 * @param shapes limits of inputs of the built engine ({@code build_shapes})
 */
record TensorRtOptions(
        boolean graphs,
        Priority priority,
        boolean eager,
        Map<String, String> filenames,
        String onnx,
        String precision,
        long workspaceBytes,
        Map<String, ProfileRange> shapes) {
    private static final String ONNX = "build_from_onnx";
    private static final String PRECISION = "build_precision";
    private static final String WORKSPACE = "build_workspace_bytes";
    private static final String SHAPES = "build_shapes";

    /** The priority of an instance's streams. */
    enum Priority {
        /** That of streams without one. */
        DEFAULT,
        /** The greatest. */
        MAX,
        /** The least. */
        MIN
    }

    TensorRtOptions {
        filenames = Map.copyOf(filenames);
        shapes = Map.copyOf(shapes);
    }

    static TensorRtOptions of(ModelContext context) {
        ModelSettings settings = context.settings();
        Parameters parameters = context.parameters();
        return new TensorRtOptions(
                isTrue(settings.value("optimization.cuda.graphs")),
                priority(settings.value("optimization.priority").orElse("PRIORITY_DEFAULT")),
                isTrue(settings.value("optimization.eager_batching")),
                settings.entries("cc_model_filenames"),
                onnx(parameters.text(ONNX).orElse("")),
                parameters.text(PRECISION).orElse("FP32"),
                parameters.byteSize(WORKSPACE).orElse(0),
                shapes(parameters));
    }

    private static boolean isTrue(Optional<String> value) {
        return value.equals(Optional.of("true"));
    }

    private static Priority priority(String text) {
        return switch (text) {
            case "PRIORITY_MAX" -> Priority.MAX;
            case "PRIORITY_MIN" -> Priority.MIN;
            default -> Priority.DEFAULT;
        };
    }

    private static String onnx(String value) {
        return switch (value) {
            case "false" -> "";
            case "true" -> "model.onnx";
            default -> value;
        };
    }

    /** Reads limits as in {@code IN:1x3x8x8,4x3x8x8,8x3x8x8;MASK:1,4,8}: smallest, optimal and largest for each input. */
    private static Map<String, ProfileRange> shapes(Parameters parameters) {
        String value = parameters.text(SHAPES).orElse("");
        Map<String, ProfileRange> ranges = new HashMap<>();
        for (String input : value.isBlank() ? new String[0] : value.split(";", -1)) {
            int colon = input.lastIndexOf(':');
            String[] shapes = input.substring(colon + 1).split(",", -1);
            if (colon < 1 || shapes.length != 3) {
                throw refused(parameters);
            }
            List<Shape> parsed = new ArrayList<>();
            for (String shape : shapes) {
                parsed.add(shape(shape, parameters));
            }
            ranges.put(
                    input.substring(0, colon).strip(), new ProfileRange(parsed.get(0), parsed.get(1), parsed.get(2)));
        }
        return ranges;
    }

    private static Shape shape(String text, Parameters parameters) {
        String[] sizes = text.strip().split("x", -1);
        long[] dims = new long[sizes.length];
        for (int i = 0; i < sizes.length; i++) {
            try {
                dims[i] = Long.parseLong(sizes[i]);
            } catch (NumberFormatException e) {
                throw refused(parameters);
            }
        }
        return Shape.of(dims);
    }

    private static BackendException refused(Parameters parameters) {
        return parameters.invalid(
                SHAPES,
                "inputs, each with a colon and three shapes, separated by semicolons, as in"
                        + " IN:1x3x8x8,4x3x8x8,8x3x8x8");
    }
}
