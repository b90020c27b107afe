package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Outputs and delays of an identity model, read from its configuration. Immutable.
 *
 * @param outputs the output of each input, by the input's name
 * @param defaults the outputs of optional inputs, which are zeros where the input is left out, by the input's name
 * @param batches whether tensors have a batch dimension
 * @param delays the waits that simulate computation
 */
record IdentityModel(
        Map<String, String> outputs, Map<String, TensorSpec> defaults, boolean batches, IdentityDelays delays) {
    private static final String INPUT = "INPUT";
    private static final String OUTPUT = "OUTPUT";

    IdentityModel {
        outputs = Map.copyOf(outputs);
        defaults = Map.copyOf(defaults);
    }

    static IdentityModel of(ModelContext context) {
        ModelSettings settings = context.settings();
        Map<String, String> outputs = new LinkedHashMap<>();
        Map<String, TensorSpec> defaults = new LinkedHashMap<>();
        for (TensorSpec input : settings.inputs()) {
            TensorSpec output = outputOf(input, settings);
            outputs.put(input.name(), output.name());
            if (input.is(TensorSpec.Trait.OPTIONAL)) {
                defaults.put(input.name(), output);
            }
        }
        for (TensorSpec output : settings.outputs()) {
            if (!output.name().startsWith(OUTPUT)) {
                throw invalid("expected output name to follow OUTPUT<index> pattern, got '" + output.name() + "'");
            }
            if (!outputs.containsValue(output.name())) {
                throw invalid("expected input and output indices to match, got output '" + output.name()
                        + "' without an input");
            }
        }
        return new IdentityModel(outputs, defaults, settings.batches(), IdentityDelays.of(context.parameters()));
    }

    private static TensorSpec outputOf(TensorSpec input, ModelSettings settings) {
        if (!input.name().startsWith(INPUT)) {
            throw invalid("expected input name to follow INPUT<index> pattern, got '" + input.name() + "'");
        }
        Optional<TensorSpec> output = settings.output(OUTPUT + input.name().substring(INPUT.length()));
        if (output.isEmpty()) {
            throw invalid(
                    "expected input and output indices to match, got input '" + input.name() + "' without an output");
        }
        if (output.get().type() != input.type()) {
            throw invalid("expected input and output datatype to match, got " + input.type() + " and "
                    + output.get().type() + " ('" + input.name() + "', '"
                    + output.get().name() + "')");
        }
        return output.get();
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
