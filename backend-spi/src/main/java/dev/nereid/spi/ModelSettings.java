package dev.nereid.spi;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A model's configuration, as its backend sees it. Immutable; created by the server, and by a {@link
 * ModelSettingsBuilder} in tests.
 *
 * <p>Fields without a method are read by {@link #value}, {@link #values} and {@link #entries}. The parameters of the
 * configuration are in {@link ModelContext#parameters}.
 *
 * @since 1.0
 */
public final class ModelSettings {
    private final String name;
    private final long version;
    private final int maxBatchSize;
    private final boolean decoupled;
    private final List<TensorSpec> inputs;
    private final List<TensorSpec> outputs;
    private final List<BatchInput> batchInputs;
    private final List<BatchOutput> batchOutputs;
    private final String modelFilename;
    private final Optional<SequenceBatching> sequenceBatching;
    private final String json;

    ModelSettings(ModelSettingsBuilder builder) {
        name = builder.name;
        version = builder.version;
        maxBatchSize = builder.maxBatchSize;
        decoupled = builder.decoupled;
        inputs = List.copyOf(builder.inputs);
        outputs = List.copyOf(builder.outputs);
        batchInputs = List.copyOf(builder.batchInputs);
        batchOutputs = List.copyOf(builder.batchOutputs);
        modelFilename = builder.modelFilename;
        sequenceBatching = builder.sequenceBatching;
        json = builder.json;
    }

    /**
     * Starts the settings of a model.
     *
     * @param name the model's name
     * @param version the version, 0 or more
     * @return a builder with all other properties empty, 0 or {@code false}
     */
    public static ModelSettingsBuilder builder(String name, long version) {
        return new ModelSettingsBuilder(name, version);
    }

    /**
     * Returns the model's name.
     *
     * @return the name
     */
    public String name() {
        return name;
    }

    /**
     * Returns the version that is loaded.
     *
     * @return the version, 0 or more
     */
    public long version() {
        return version;
    }

    /**
     * Returns the largest number of items in a batch.
     *
     * @return the largest batch; 0 if the model's tensors have no batch dimension
     */
    public int maxBatchSize() {
        return maxBatchSize;
    }

    /**
     * Says whether tensors have a batch dimension in front.
     *
     * @return whether {@link #maxBatchSize()} is above 0
     */
    public boolean batches() {
        return maxBatchSize > 0;
    }

    /**
     * Says whether a request gets any number of responses.
     *
     * @return {@code true} for 0 to n responses, {@code false} for exactly one
     */
    public boolean decoupled() {
        return decoupled;
    }

    /**
     * Returns the inputs in the order of the configuration.
     *
     * @return the inputs; immutable
     */
    public List<TensorSpec> inputs() {
        return inputs;
    }

    /**
     * Returns the outputs in the order of the configuration.
     *
     * @return the outputs; immutable
     */
    public List<TensorSpec> outputs() {
        return outputs;
    }

    /**
     * Finds an input.
     *
     * @param tensor its name
     * @return the input, or empty if there is none of that name
     */
    public Optional<TensorSpec> input(String tensor) {
        return find(inputs, tensor);
    }

    /**
     * Finds an output.
     *
     * @param tensor its name
     * @return the output, or empty if there is none of that name
     */
    public Optional<TensorSpec> output(String tensor) {
        return find(outputs, tensor);
    }

    /**
     * Returns the inputs that the server derives from a batch's requests. They are in the order of the configuration.
     *
     * @return the derived inputs, which are not among {@link #inputs()}; immutable
     */
    public List<BatchInput> batchInputs() {
        return batchInputs;
    }

    /**
     * Returns the outputs that the server cuts into the shapes of inputs. They are in the order of the configuration.
     *
     * @return how outputs are cut that are among {@link #outputs()}; immutable
     */
    public List<BatchOutput> batchOutputs() {
        return batchOutputs;
    }

    /**
     * Returns the name of the model's file or directory within the version's directory ({@code
     * default_model_filename}).
     *
     * @return the name, or an empty text if none is configured
     */
    public String modelFilename() {
        return modelFilename;
    }

    /**
     * Returns the sequence batching of the model.
     *
     * @return the sequence batching, with control inputs and states; empty for a model without it
     */
    public Optional<SequenceBatching> sequenceBatching() {
        return sequenceBatching;
    }

    /**
     * Reads a field of the configuration, such as {@code optimization.graph.level}.
     *
     * @param path the names of the fields as in {@code config.pbtxt}, separated by dots; an element of a list has its
     *     number from 0, as in {@code instance_group.0.count}
     * @return a text, number, truth value or name of a constant as it is, a message, map or list as JSON; empty if the
     *     configuration does not have it. A field that is not written has its default value where its message is there
     */
    public Optional<String> value(String path) {
        return ConfigurationJson.find(json, path).map(ConfigurationJson.Value::text);
    }

    /**
     * Reads a list of the configuration, such as {@code model_operations.op_library_filename}.
     *
     * @param path as of {@link #value}; a list on the way without a number stands for each of its elements, as in
     *     {@code instance_group.profile}
     * @return the elements, each as of {@link #value}; a single value is a list of one. Empty if the configuration does not
     *     have it; immutable
     */
    public List<String> values(String path) {
        return ConfigurationJson.findAll(json, path);
    }

    /**
     * Reads a map or message of the configuration, such as {@code cc_model_filenames}.
     *
     * @param path as of {@link #value}
     * @return the values by key or name of the field, in the order of the configuration, each as of {@link #value}; empty
     *     if the configuration does not have it; immutable
     */
    public Map<String, String> entries(String path) {
        return ConfigurationJson.entries(json, path);
    }

    /**
     * Returns the whole configuration as the protocols print it.
     *
     * @return a JSON object with the configuration's own field names, which {@link #value}, {@link #values} and {@link
     *     #entries} read; {@code {}} in tests without one
     */
    public String json() {
        return json;
    }

    private static Optional<TensorSpec> find(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return Optional.of(spec);
            }
        }
        return Optional.empty();
    }
}
