package dev.nereid.backend.python;

import dev.nereid.backend.python.frame.CompletedFrame;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Makes a completion of the configuration that {@code auto_complete_config} has returned. Static functions only.
 *
 * <p>Inputs and outputs replace the configured ones. A largest batch, dynamic batching and a transaction policy are
 * added where the configuration has none, as is another scheduling; a configured largest batch is never changed, a
 * written 0 neither. Emptied lists are errors, since the server would not take them over. All other fields are dropped.
 */
final class Completion {
    /** The fields of the choice of scheduling, with their numbers in the configuration. */
    private static final Map<String, Integer> SCHEDULING =
            Map.of("dynamic_batching", 11, "sequence_batching", 13, "ensemble_scheduling", 15);

    private static final String DYNAMIC = "dynamic_batching";

    /** The deepest nesting of a configuration: the reader of the SPI calls itself for each level. */
    private static final int MAX_DEPTH = 100;

    private static final int MAX_LENGTH = 64 << 20;

    private Completion() {}

    /** Returns the configuration of the model so far, which is sent to it for completion. */
    static String configuration(ModelContext model) {
        return model.settings().json();
    }

    /**
     * Returns what the model has completed.
     *
     * @param model the model, as configured so far; its log gets values that are not taken over
     * @param completed the configuration that the model has returned
     * @throws BackendException if a value cannot be taken over, or is wrong
     */
    static ModelCompletion of(ModelContext model, CompletedFrame completed) {
        ModelSettings settings = model.settings();
        ModelSettings returned = returned(settings, completed.json());
        ModelCompletion completion = ModelCompletion.EMPTY;

        List<TensorSpec> inputs = specs(settings, returned, "input", completed.inputs());
        if (!inputs.equals(settings.inputs())) { // equal ones stay, also where the first dimension would be no batch
            completion = completion.withInputs(inputs);
        }
        List<TensorSpec> outputs = specs(settings, returned, "output", completed.outputs());
        if (!outputs.equals(settings.outputs())) {
            completion = completion.withOutputs(outputs);
        }

        long size = completed.maxBatchSize();
        if (size < 0 || size > Integer.MAX_VALUE) {
            throw invalid(settings, "max_batch_size " + size + " (expected: 0 or more)");
        }
        if (settings.maxBatchSize() == 0 && size > 0) {
            completion = completion.withProposedMaxBatchSize((int) size);
        } else if (size != settings.maxBatchSize()) {
            model.logger()
                    .log(
                            Level.WARNING,
                            "model ''{0}'': auto_complete_config sets max_batch_size {1}; the configured {2} stays",
                            settings.name(),
                            Long.toString(size),
                            Integer.toString(settings.maxBatchSize()));
        }
        completion = withScheduling(settings, completion, returned, completed.scheduling());
        return withPolicy(model, completion, completed.decoupled());
    }

    private static ModelCompletion withPolicy(
            ModelContext model, ModelCompletion completion, Optional<Boolean> decoupled) {
        if (decoupled.isEmpty()) {
            return completion;
        }
        ModelSettings settings = model.settings();
        boolean isConfigured = settings.value("model_transaction_policy").isPresent();
        if (isConfigured && settings.decoupled() != decoupled.get()) {
            model.logger()
                    .log(
                            Level.WARNING,
                            "model ''{0}'': auto_complete_config sets decoupled {1}; the configured {2} stays",
                            settings.name(),
                            decoupled.get(),
                            settings.decoupled());
        }
        return isConfigured ? completion : completion.withDecoupled(decoupled.get());
    }

    /** Reads the JSON that a process has sent. */
    private static ModelSettings returned(ModelSettings settings, String json) {
        checkDepth(settings, json);
        ModelSettings returned = json(json);
        try {
            returned.value("name"); // parses it
            return returned;
        } catch (IllegalArgumentException e) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "model '" + settings.name() + "': auto_complete_config has returned no configuration: "
                            + e.getMessage(),
                    e);
        }
    }

    private static ModelSettings json(String json) {
        return ModelSettings.builder("", 0).json(json).build();
    }

    private static void checkDepth(ModelSettings settings, String json) {
        if (json.length() > MAX_LENGTH) {
            throw invalid(
                    settings,
                    "a configuration of " + json.length() + " characters (expected: at most " + MAX_LENGTH + ")");
        }
        int depth = 0;
        boolean isText = false;
        for (int i = 0; i < json.length(); i++) {
            char c = json.charAt(i);
            if (isText && c == '\\') {
                i++;
            } else if (c == '"') {
                isText = !isText;
            } else if (!isText && (c == '{' || c == '[')) {
                depth++;
                if (depth > MAX_DEPTH) {
                    throw invalid(settings, "a configuration deeper than " + MAX_DEPTH + " levels");
                }
            } else if (!isText && (c == '}' || c == ']')) {
                depth--;
            }
        }
    }

    private static ModelCompletion withScheduling(
            ModelSettings settings, ModelCompletion completion, ModelSettings returned, String scheduling) {
        String configured = SCHEDULING.keySet().stream()
                .filter(choice -> settings.value(choice).isPresent())
                .findFirst()
                .orElse("");
        if (configured.equals(scheduling)) {
            return completion;
        }
        if (!configured.isEmpty()) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Cannot update scheduling choice from " + number(configured) + " to " + number(scheduling)
                            + " when auto-completing.");
        }
        if (scheduling.equals(DYNAMIC) && returned.entries(DYNAMIC).isEmpty()) {
            return completion.withDynamicBatching();
        }
        return completion.withScheduling(
                "{\"" + scheduling + "\":" + returned.value(scheduling).orElse("{}") + "}");
    }

    private static int number(String choice) {
        return SCHEDULING.getOrDefault(choice, 0);
    }

    private static List<TensorSpec> specs(
            ModelSettings settings, ModelSettings returned, String role, List<CompletedFrame.Tensor> tensors) {
        if (tensors.isEmpty() && settings.value(role + ".0").isPresent()) {
            throw invalid(settings, "no " + role + ", though the configuration has one (expected: all of them)");
        }
        List<String> fields = returned.values(role);
        if (fields.size() != tensors.size()) {
            throw invalid(
                    settings,
                    fields.size() + " " + role + "s in a frame with " + tensors.size() + " (expected: as many)");
        }
        List<TensorSpec> specs = new ArrayList<>(tensors.size());
        Set<String> names = new HashSet<>();
        for (int i = 0; i < tensors.size(); i++) {
            CompletedFrame.Tensor tensor = tensors.get(i);
            if (!names.add(tensor.name())) {
                throw invalid(settings, role + " '" + tensor.name() + "' twice (expected: once)");
            }
            TensorSpec spec = TensorSpec.of(
                    tensor.name(), type(settings, role, tensor), shape(settings, role, tensor.name(), tensor.dims()));
            specs.add(withTraits(
                    settings,
                    json(fields.get(i)),
                    role,
                    tensor.optional() ? spec.with(TensorSpec.Trait.OPTIONAL) : spec));
        }
        return specs;
    }

    /** Adds the fields that the frame does not have, from the JSON. */
    private static TensorSpec withTraits(ModelSettings settings, ModelSettings fields, String role, TensorSpec plain) {
        TensorSpec spec = plain;
        spec = with(spec, TensorSpec.Trait.RAGGED, fields.value("allow_ragged_batch"));
        spec = with(spec, TensorSpec.Trait.SHAPE_TENSOR, fields.value("is_shape_tensor"));
        spec = with(spec, TensorSpec.Trait.NON_LINEAR_FORMAT, fields.value("is_non_linear_format_io"));
        if (fields.value("reshape").isEmpty()) {
            return spec;
        }
        List<Long> dims = new ArrayList<>();
        for (String dim : fields.values("reshape.shape")) {
            try {
                dims.add(Long.parseLong(dim));
            } catch (NumberFormatException e) {
                throw invalid(
                        settings, role + " '" + plain.name() + "' with a reshape of '" + dim + "' (expected: numbers)");
            }
        }
        return spec.withReshape(shape(settings, role, plain.name(), dims));
    }

    private static TensorSpec with(TensorSpec spec, TensorSpec.Trait trait, Optional<String> value) {
        return value.filter("true"::equals).isPresent() ? spec.with(trait) : spec;
    }

    private static Shape shape(ModelSettings settings, String role, String name, List<Long> dims) {
        try {
            return Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
        } catch (IllegalArgumentException e) {
            throw invalid(settings, role + " '" + name + "' with " + e.getMessage());
        }
    }

    private static DataType type(ModelSettings settings, String role, CompletedFrame.Tensor tensor) {
        String name = tensor.dataType();
        if (name.equals("TYPE_STRING")) {
            return DataType.BYTES;
        }
        for (DataType type : DataType.values()) {
            if (name.equals("TYPE_" + type.name()) && type != DataType.BYTES) {
                return type;
            }
        }
        throw invalid(
                settings,
                role + " '" + tensor.name() + "' with data_type '" + name + "' (expected: a type such as TYPE_FP32)");
    }

    private static BackendException invalid(ModelSettings settings, String what) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                "model '" + settings.name() + "': auto_complete_config has returned " + what);
    }
}
