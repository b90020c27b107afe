package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.spi.Parameters;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/**
 * Options of ONNX Runtime's provider of CUDA, from an accelerator {@code cuda} and from the parameters of a model.
 * Stateless.
 *
 * <p>The parameters of the accelerator are passed on to ONNX Runtime, which refuses unknown options. Options that are
 * addresses in the memory of the process are refused here.
 */
final class CudaOptions {
    private static final Set<String> TRUTHS = Set.of("do_copy_in_default_stream", "use_ep_level_unified_stream");

    /** Options with an address, which ONNX Runtime would use unchecked, and one that says whether there is one. */
    private static final Set<String> ADDRESSES = Set.of(
            "has_user_compute_stream",
            "user_compute_stream",
            "default_memory_arena_cfg",
            "gpu_external_alloc",
            "gpu_external_free",
            "gpu_external_empty_cache");

    private static final String GRAPH = "enable_cuda_graph";
    private static final List<String> SEARCHES = List.of("EXHAUSTIVE", "HEURISTIC", "DEFAULT");
    private static final List<String> STRATEGIES = List.of("kNextPowerOfTwo", "kSameAsRequested");

    private CudaOptions() {}

    static Map<String, String> of(Map<String, String> parameters) {
        OptionValues values = new OptionValues(AcceleratorParameters.of("cuda", parameters));
        Map<String, String> options = new HashMap<>();
        for (Map.Entry<String, String> parameter : parameters.entrySet()) {
            String name = parameter.getKey();
            if (ADDRESSES.contains(name)) {
                throw values.values().invalid(name, "none, since a configuration cannot know addresses of the process");
            }
            if (name.equals(GRAPH) && values.truth(name).orElse(false)) {
                throw values.values().invalid(name, OnnxErrors.NO_GRAPHS);
            }
            if (!parameter.getValue().isEmpty()) {
                options.put(name, TRUTHS.contains(name) ? truth(values, name) : parameter.getValue());
            }
        }
        return options;
    }

    /** Returns the options among the parameters of a model. They take precedence over the options of an accelerator. */
    static Map<String, String> ofModel(Parameters parameters) {
        OptionValues values = new OptionValues(parameters);
        Map<String, String> options = new HashMap<>();
        choice(values, OnnxParameters.CONV_ALGO_SEARCH, SEARCHES)
                .ifPresent(value -> options.put(OnnxParameters.CONV_ALGO_SEARCH, value));
        choice(values, OnnxParameters.ARENA_EXTEND_STRATEGY, STRATEGIES)
                .ifPresent(value -> options.put(OnnxParameters.ARENA_EXTEND_STRATEGY, value));
        parameters
                .text(OnnxParameters.GPU_MEM_LIMIT)
                .ifPresent(limit -> options.put(OnnxParameters.GPU_MEM_LIMIT, limit));
        values.truth(OnnxParameters.COPY_IN_DEFAULT_STREAM)
                .ifPresent(truth -> options.put(OnnxParameters.COPY_IN_DEFAULT_STREAM, truth ? "1" : "0"));
        return options;
    }

    /** Returns the option that a parameter gives by its number. */
    private static Optional<String> choice(OptionValues values, String name, List<String> choices) {
        OptionalInt configured = values.number(name);
        if (configured.isEmpty()) {
            return Optional.empty();
        }
        int number = configured.getAsInt();
        if (number < 0 || number >= choices.size()) {
            throw values.refused(
                    "unsupported " + name + " value '" + number + "' is requested",
                    name,
                    "0 to " + (choices.size() - 1) + " for " + String.join(", ", choices));
        }
        return Optional.of(choices.get(number));
    }

    private static String truth(OptionValues values, String name) {
        return values.truth(name).orElse(false) ? "1" : "0";
    }
}
