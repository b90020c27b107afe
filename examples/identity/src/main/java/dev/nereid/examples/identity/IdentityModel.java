package dev.nereid.examples.identity;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * Outputs and delay of an identity model, read from its configuration. Immutable.
 *
 * @param outputs the output of each input, by the input's name
 * @param delayNanos how long each execution takes at least, in nanoseconds
 */
record IdentityModel(Map<String, String> outputs, long delayNanos) {
    private static final String INPUT = "INPUT";
    private static final String OUTPUT = "OUTPUT";
    private static final String DELAY = "execute_delay_ms";

    IdentityModel {
        outputs = Map.copyOf(outputs);
    }

    static IdentityModel of(ModelSettings settings) throws BackendException {
        Map<String, String> outputs = new LinkedHashMap<>();
        for (TensorSpec input : settings.inputs()) {
            outputs.put(input.name(), outputOf(input, settings));
        }
        for (TensorSpec output : settings.outputs()) {
            if (!outputs.containsValue(output.name())) {
                throw invalid(
                        "output: '" + output.name() + "' (expected: the output of an input, OUTPUT<i> of INPUT<i>)");
            }
        }
        return new IdentityModel(outputs, delayNanos(settings));
    }

    private static String outputOf(TensorSpec input, ModelSettings settings) throws BackendException {
        if (!input.name().startsWith(INPUT)) {
            throw invalid("input: '" + input.name() + "' (expected: a name that starts with INPUT)");
        }
        String name = OUTPUT + input.name().substring(INPUT.length());
        Optional<TensorSpec> output = settings.output(name);
        if (output.isEmpty()) {
            throw invalid("input: '" + input.name() + "' (expected: an output '" + name + "' beside it)");
        }
        if (output.get().type() != input.type()) {
            throw invalid("output '" + name + "': " + output.get().type() + " (expected: " + input.type()
                    + ", the type of input '" + input.name() + "')");
        }
        return name;
    }

    private static long delayNanos(ModelSettings settings) throws BackendException {
        String text = settings.parameters().getOrDefault(DELAY, "0");
        try {
            long millis = Long.parseLong(text);
            if (millis >= 0) {
                return TimeUnit.MILLISECONDS.toNanos(millis);
            }
        } catch (NumberFormatException ignored) {
            // refused below, together with numbers that are too small
        }
        throw invalid(DELAY + ": '" + text + "' (expected: a whole number of milliseconds, 0 or more)");
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
