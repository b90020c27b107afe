package dev.nereid.scheduler.request;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.spi.ParameterValue;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A request that passed the checks against its model configuration. Immutable as a view of its memory, which the holder
 * of the request owns.
 *
 * @param model the model's name
 * @param version the version that serves the request; never a placeholder for the latest
 * @param batchSize the first dimension that all inputs share if the model batches, else 1; at least 1
 * @param id the client's id of the request; empty for none
 * @param inputs the inputs in the order of the configuration, in the shapes that the backend sees, batch dimension
 *     included; without the optional inputs that the client left out
 * @param outputs the names of the requested outputs, in the order of the configuration; never empty unless the model
 *     has no outputs
 * @param targets client memory for outputs; empty for almost all requests
 * @param parameters the parameters for the backend, without those that {@code options} holds; immutable
 * @param options the scheduling options
 * @param release frees the memory of the inputs: run exactly once, on any thread; short, and must not block or throw
 */
public record CheckedRequest(
        String model,
        long version,
        int batchSize,
        String id,
        List<NamedTensor> inputs,
        List<String> outputs,
        List<OutputTarget> targets,
        Map<String, ParameterValue> parameters,
        RequestOptions options,
        Runnable release) {
    /** Checks the components; lists are not copied, since this is the hot path: callers must not change them. */
    public CheckedRequest {
        requireNonNull(model, "model");
        requireNonNull(id, "id");
        requireNonNull(inputs, "inputs");
        requireNonNull(outputs, "outputs");
        requireNonNull(targets, "targets");
        requireNonNull(parameters, "parameters");
        requireNonNull(options, "options");
        requireNonNull(release, "release");
        if (batchSize < 1) {
            throw new IllegalArgumentException("batchSize: " + batchSize + " (expected: >= 1)");
        }
    }

    /** Returns the size of all inputs in bytes. */
    public long inputBytes() {
        long size = 0;
        for (int i = 0; i < inputs.size(); i++) {
            size += inputs.get(i).tensor().byteSize();
        }
        return size;
    }

    /** Returns the client memory for an output; {@code null} if the client passed none. */
    @Nullable
    public MemorySegment target(String output) {
        for (int i = 0; i < targets.size(); i++) {
            if (targets.get(i).output().equals(output)) {
                return targets.get(i).memory();
            }
        }
        return null;
    }

    /** Returns whether the client requested an output. */
    public boolean requestsOutput(String output) {
        for (int i = 0; i < outputs.size(); i++) {
            if (outputs.get(i).equals(output)) {
                return true;
            }
        }
        return false;
    }
}
