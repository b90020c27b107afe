package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.OutputTarget;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.MemoryPlace;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A request that passed the checks against its model configuration. Immutable as a view of its memory, which the holder
 * of the request owns.
 *
 * @param id the client's id of the request; empty for none
 * @param inputs the input tensors, and the action that frees their memory
 * @param parameters the parameters for the backend, without the ones in {@code options}; immutable
 * @param arrivedNanos the time at which the server received the request, on the scale of {@link System#nanoTime()}
 */
public record CheckedRequest(
        ModelVersion modelVersion,
        String id,
        RequestInputs inputs,
        RequestOutputs outputs,
        Map<String, ParameterValue> parameters,
        RequestOptions options,
        long arrivedNanos) {
    private static final Logger LOG = LoggerFactory.getLogger(CheckedRequest.class);

    /** Checks the components. The map is not copied, since this is the hot path: callers must not change it. */
    public CheckedRequest {
        requireNonNull(modelVersion, "modelVersion");
        requireNonNull(id, "id");
        requireNonNull(inputs, "inputs");
        requireNonNull(outputs, "outputs");
        requireNonNull(parameters, "parameters");
        requireNonNull(options, "options");
    }

    public CheckedRequest withInputs(RequestInputs changed) {
        return new CheckedRequest(modelVersion, id, changed, outputs, parameters, options, arrivedNanos);
    }

    /** Replaces the time of arrival. */
    public CheckedRequest arrivedAt(long nanos) {
        return new CheckedRequest(modelVersion, id, inputs, outputs, parameters, options, nanos);
    }

    public String model() {
        return modelVersion.model();
    }

    public long version() {
        return modelVersion.version();
    }

    /** Returns the first dimension that all inputs share if the model batches, else 1; at least 1. */
    public int batchSize() {
        return inputs.batchSize();
    }

    public long inputBytes() {
        return inputs.byteSize();
    }

    /** Frees the memory of the inputs, and logs errors. Called once, on any thread; does not block or throw. */
    public void releaseInputs() {
        try {
            inputs.release();
        } catch (Throwable e) { // of the client, which may be an embedding program or a plugin
            log("release of inputs failed", e);
        }
    }

    /** Returns the client memory for an output; {@code null} if the client passed none. */
    @Nullable
    public OutputTarget target(String output) {
        return outputs.target(output);
    }

    /** Returns whether an output stays in memory of a device, or goes to client memory on it. */
    public boolean takesOutput(String output, MemoryPlace device) {
        return outputs.takes(output, device);
    }

    public boolean requestsOutput(String output) {
        return outputs.contains(output);
    }

    /** Logs an unexpected failure with the model, version and id of the request. */
    void log(String event, Throwable cause) {
        LOG.atError()
                .addKeyValue("model", model())
                .addKeyValue("version", version())
                .addKeyValue("requestId", id())
                .setCause(cause)
                .log(event + " (model '{}', version {})", model(), version());
    }
}
