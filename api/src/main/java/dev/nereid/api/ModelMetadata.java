package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.TensorSpec;
import java.util.List;

/**
 * Metadata of a model: its name, versions, platform, inputs and outputs. Immutable.
 *
 * @param name the model's name
 * @param versions the requested version, or every ready version, in rising order
 * @param platform the platform of the configuration, otherwise the backend
 * @param maxBatchSize the largest batch; 0 if tensors have no batch dimension
 * @param decoupled whether a request gets any number of responses
 * @param inputs the inputs, shapes without batch dimension
 * @param outputs the outputs, shapes without batch dimension
 */
public record ModelMetadata(
        String name,
        List<Long> versions,
        String platform,
        int maxBatchSize,
        boolean decoupled,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs) {
    /** Checks and copies the components. */
    public ModelMetadata {
        requireNonNull(name, "name");
        versions = List.copyOf(versions);
        requireNonNull(platform, "platform");
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }
}
