package dev.nereid.api.frontend;

import dev.nereid.api.InferResponse;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.Sequence;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/** Separates a request's scheduling options from its parameters for the backend. Confined to one thread. */
public final class RequestParameters {
    /** Slots of the map of parameters. Most requests with parameters have no more than a few. */
    private static final int CAPACITY = 8;

    private Optional<Sequence.Id> sequenceId = Optional.empty();
    private boolean sequenceStart;
    private boolean sequenceEnd;
    private long priority;
    private long timeoutMicros;
    private Map<String, ParameterValue> backendParameters = Map.of();

    /** Creates the parameters of a request that has none. */
    public RequestParameters() {}

    /**
     * Reads one parameter by the rule for its name. Of equal names for the backend the first one counts, of others the
     * last one.
     *
     * @param name the parameter's name
     * @param value decodes its value
     * @throws dev.nereid.api.InferenceException if the value does not suit the name, or if the name is reserved
     */
    public void read(String name, ParameterReader value) {
        switch (name) {
            case "sequence_id" -> sequenceId = value.sequenceId();
            case "sequence_start" -> sequenceStart = value.bool(name);
            case "sequence_end" -> sequenceEnd = value.bool(name);
            case "priority" -> priority = value.priority();
            case "timeout" -> timeoutMicros = value.timeoutMicros();
            default -> {
                if (name.startsWith(InferResponse.RESERVED_PREFIX)) {
                    throw value.reserved();
                }
                if (backendParameters.isEmpty()) {
                    backendParameters = new LinkedHashMap<>(CAPACITY);
                }
                backendParameters.putIfAbsent(name, value.value(name));
            }
        }
    }

    /**
     * Returns the scheduling options.
     *
     * @param deadlineNanos the deadline of the caller, on the scale of {@link System#nanoTime()}
     * @return the options
     */
    public RequestOptions options(OptionalLong deadlineNanos) {
        Optional<Sequence> sequence = sequenceId.map(id -> new Sequence(id, sequenceStart, sequenceEnd));
        return new RequestOptions(priority, timeoutMicros, deadlineNanos, sequence);
    }

    /**
     * Returns the number of parameters for the backend so far.
     *
     * @return the number
     */
    public int backendParameterCount() {
        return backendParameters.size();
    }

    /**
     * Returns the parameters for the backend.
     *
     * @return the parameters in the order in which they were read; unmodifiable
     */
    public Map<String, ParameterValue> backendParameters() {
        return backendParameters.isEmpty() ? Map.of() : Collections.unmodifiableMap(backendParameters);
    }
}
