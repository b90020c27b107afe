package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Builds {@link ModelSettings}. Confined to one thread.
 *
 * @since 1.0
 */
public final class ModelSettingsBuilder {
    final String name;
    final long version;
    final List<TensorSpec> inputs = new ArrayList<>();
    final List<TensorSpec> outputs = new ArrayList<>();
    final List<BatchInput> batchInputs = new ArrayList<>();
    final List<BatchOutput> batchOutputs = new ArrayList<>();
    int maxBatchSize;
    boolean decoupled;
    String modelFilename = "";
    String json = "{}";
    Optional<SequenceBatching> sequenceBatching = Optional.empty();

    ModelSettingsBuilder(String name, long version) {
        this.name = requireNonNull(name, "name");
        if (version < 0) {
            throw new IllegalArgumentException("version: " + version + " (expected: >= 0)");
        }
        this.version = version;
    }

    /**
     * Sets {@link ModelSettings#maxBatchSize()}.
     *
     * @param size 0 or more
     * @return this builder
     */
    public ModelSettingsBuilder maxBatchSize(int size) {
        if (size < 0) {
            throw new IllegalArgumentException("size: " + size + " (expected: >= 0)");
        }
        maxBatchSize = size;
        return this;
    }

    /**
     * Sets {@link ModelSettings#decoupled()}.
     *
     * @param value whether a request has any number of responses
     * @return this builder
     */
    public ModelSettingsBuilder decoupled(boolean value) {
        decoupled = value;
        return this;
    }

    /**
     * Adds an input.
     *
     * @param spec the input
     * @return this builder
     */
    public ModelSettingsBuilder input(TensorSpec spec) {
        inputs.add(spec);
        return this;
    }

    /**
     * Adds an output.
     *
     * @param spec the output
     * @return this builder
     */
    public ModelSettingsBuilder output(TensorSpec spec) {
        outputs.add(spec);
        return this;
    }

    /**
     * Adds an input that the server derives.
     *
     * @param derived the input
     * @return this builder
     */
    public ModelSettingsBuilder batchInput(BatchInput derived) {
        batchInputs.add(requireNonNull(derived, "derived"));
        return this;
    }

    /**
     * Adds how outputs are cut.
     *
     * @param cut the outputs, and the input with the shapes of their parts
     * @return this builder
     */
    public ModelSettingsBuilder batchOutput(BatchOutput cut) {
        batchOutputs.add(requireNonNull(cut, "cut"));
        return this;
    }

    /**
     * Sets {@link ModelSettings#modelFilename()}.
     *
     * @param filename the name of the model's file or directory
     * @return this builder
     */
    public ModelSettingsBuilder modelFilename(String filename) {
        modelFilename = requireNonNull(filename, "filename");
        return this;
    }

    /**
     * Sets {@link ModelSettings#sequenceBatching()}.
     *
     * @param batching the sequence batching
     * @return this builder
     */
    public ModelSettingsBuilder sequenceBatching(SequenceBatching batching) {
        sequenceBatching = Optional.of(batching);
        return this;
    }

    /**
     * Sets {@link ModelSettings#json()}, of which fields without a method are read. The methods of this builder do not
     * change it.
     *
     * @param text a JSON object such as <code>{"optimization":{"graph":{"level":1}}}</code>
     * @return this builder
     */
    public ModelSettingsBuilder json(String text) {
        json = requireNonNull(text, "text");
        return this;
    }

    /**
     * Creates the settings.
     *
     * @return the settings
     */
    public ModelSettings build() {
        return new ModelSettings(this);
    }
}
