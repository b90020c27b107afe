package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.natives.OptionValues;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Options of ONNX Runtime's provider of TensorRT, from the parameters of an accelerator {@code tensorrt}. Stateless.
 *
 * <p>Names and texts are the same as on the reference server, which refuses any other parameter.
 */
final class TensorRtOptions {
    private static final String PRECISION = "precision_mode";
    private static final String WORKSPACE = "max_workspace_size_bytes";
    private static final String GRAPH = "trt_cuda_graph_enable";

    private static final Set<String> NUMBERS = Set.of(
            "trt_max_partition_iterations",
            "trt_min_subgraph_size",
            "trt_dla_core",
            "trt_builder_optimization_level",
            "trt_auxiliary_streams",
            "trt_ep_context_embed_mode");

    private static final Set<String> TRUTHS = Set.of(
            "int8_use_native_calibration_table",
            "trt_dla_enable",
            "trt_engine_cache_enable",
            "trt_dump_subgraphs",
            "trt_force_sequential_engine_build",
            "trt_context_memory_sharing_enable",
            "trt_layer_norm_fp32_fallback",
            "trt_timing_cache_enable",
            "trt_force_timing_cache",
            "trt_detailed_build_log",
            "trt_build_heuristics_enable",
            "trt_sparsity_enable",
            GRAPH,
            "trt_dump_ep_context_model");

    private static final Set<String> TEXTS = Set.of(
            "int8_calibration_table_name",
            "trt_engine_cache_path",
            "trt_engine_cache_prefix",
            "trt_timing_cache_path",
            "trt_tactic_sources",
            "trt_extra_plugin_lib_paths",
            "trt_profile_min_shapes",
            "trt_profile_max_shapes",
            "trt_profile_opt_shapes",
            "trt_ep_context_file_path");

    /** The precisions, with the option that allows each. The option of the default one is empty. */
    private static final Map<String, String> PRECISIONS =
            Map.of("FP32", "", "FP16", "trt_fp16_enable", "BF16", "trt_bf16_enable", "INT8", "trt_int8_enable");

    private static final Pattern DIGITS = Pattern.compile("\\s*(\\d+)");

    private TensorRtOptions() {}

    static Map<String, String> of(Map<String, String> parameters) {
        OptionValues values = new OptionValues(AcceleratorParameters.of("tensorrt", parameters));
        Map<String, String> options = new HashMap<>();
        for (String name : parameters.keySet()) {
            add(options, values, name);
        }
        return options;
    }

    private static void add(Map<String, String> options, OptionValues values, String name) {
        String text = values.values().text(name).orElse("");
        if (name.equals(PRECISION)) {
            addPrecision(options, values, text);
        } else if (name.equals(WORKSPACE)) {
            options.put("trt_max_workspace_size", bytes(values, text));
        } else if (NUMBERS.contains(name)) {
            options.put(name, Integer.toString(values.number(name).orElse(0)));
        } else if (TRUTHS.contains(name)) {
            options.put(option(name), truth(values, name));
        } else if (!TEXTS.contains(name)) {
            throw ModelErrors.invalid(
                    "unknown parameter '" + name + "' is provided for TensorRT Execution Accelerator");
        } else if (!text.isEmpty()) {
            options.put(option(name), text);
        }
    }

    private static void addPrecision(Map<String, String> options, OptionValues values, String text) {
        String option = PRECISIONS.get(text);
        if (option == null) {
            throw values.refused(
                    "unsupported precision mode '" + text + "' is requested", PRECISION, "FP32, FP16, BF16 or INT8");
        }
        if (!option.isEmpty()) {
            options.put(option, "1");
        }
    }

    /** Returns the whole number at the beginning of a text, in 64 bits without a sign. */
    private static String bytes(OptionValues values, String text) {
        Matcher matcher = DIGITS.matcher(text);
        try {
            if (matcher.lookingAt()) {
                return Long.toUnsignedString(Long.parseUnsignedLong(matcher.group(1)));
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw values.refused(
                "failed to convert '" + text + "' to unsigned long long integral number",
                WORKSPACE,
                "a number of bytes");
    }

    private static String truth(OptionValues values, String name) {
        boolean isOn = values.truth(name).orElse(false);
        if (isOn && name.equals(GRAPH)) {
            throw values.values().invalid(name, OnnxErrors.NO_GRAPHS);
        }
        return isOn ? "1" : "0";
    }

    /** Returns ONNX Runtime's name of a parameter. All options of TensorRT begin alike there. */
    private static String option(String name) {
        return name.startsWith("trt_") ? name : "trt_" + name;
    }
}
