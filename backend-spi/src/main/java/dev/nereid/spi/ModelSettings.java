package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * A model's configuration as its backend needs it. Immutable; made by the server, and by a {@link Builder} in tests.
 *
 * <p>What has no method here is found in {@link #json()}, the whole configuration.
 */
public final class ModelSettings {
    /**
     * An execution accelerator that the configuration asks for.
     *
     * @param kind the kind of device it is for: {@link Device.Kind#CPU} or {@link Device.Kind#GPU}
     * @param name its name, for instance {@code tensorrt}
     * @param parameters its settings; immutable
     */
    public record Accelerator(Device.Kind kind, String name, Map<String, String> parameters) {
        /** Checks and copies the components. */
        public Accelerator {
            requireNonNull(kind, "kind");
            requireNonNull(name, "name");
            parameters = Map.copyOf(parameters);
        }
    }

    private final String name;
    private final long version;
    private final int maxBatchSize;
    private final boolean decoupled;
    private final List<TensorSpec> inputs;
    private final List<TensorSpec> outputs;
    private final List<BatchInput> batchInputs;
    private final List<BatchOutput> batchOutputs;
    private final Map<String, String> parameters;
    private final String modelFilename;
    private final OptionalInt graphLevel;
    private final List<Accelerator> accelerators;
    private final List<String> operatorLibraries;
    private final String json;

    private ModelSettings(Builder builder) {
        name = builder.name;
        version = builder.version;
        maxBatchSize = builder.maxBatchSize;
        decoupled = builder.decoupled;
        inputs = List.copyOf(builder.inputs);
        outputs = List.copyOf(builder.outputs);
        batchInputs = List.copyOf(builder.batchInputs);
        batchOutputs = List.copyOf(builder.batchOutputs);
        parameters = Map.copyOf(builder.parameters);
        modelFilename = builder.modelFilename;
        graphLevel = builder.graphLevel;
        accelerators = List.copyOf(builder.accelerators);
        operatorLibraries = List.copyOf(builder.operatorLibraries);
        json = builder.json;
    }

    /**
     * Starts the settings of a model.
     *
     * @param name the model's name
     * @param version the version, 0 or more
     * @return a builder whose other properties are empty, 0 or {@code false}
     */
    public static Builder builder(String name, long version) {
        return new Builder(name, version);
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
     * Says whether a request is answered by any number of responses.
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
     * Returns the inputs that the server derives from the requests of a batch, in the order of the configuration.
     *
     * @return the derived inputs, which are not among {@link #inputs()}; immutable
     */
    public List<BatchInput> batchInputs() {
        return batchInputs;
    }

    /**
     * Returns which outputs the server cuts into the shapes of inputs, in the order of the configuration.
     *
     * @return how outputs are cut that are among {@link #outputs()}; immutable
     */
    public List<BatchOutput> batchOutputs() {
        return batchOutputs;
    }

    /**
     * Returns the free parameters of the configuration ({@code parameters}).
     *
     * @return the parameters by key; immutable
     */
    public Map<String, String> parameters() {
        return parameters;
    }

    /**
     * Returns the name of the model's file or folder within the version's folder ({@code default_model_filename}).
     *
     * @return the name, or an empty text if none is configured
     */
    public String modelFilename() {
        return modelFilename;
    }

    /**
     * Returns how far the framework should optimize the model's graph ({@code optimization.graph.level}).
     *
     * @return the level, whose meaning is the backend's own, or empty if none is configured
     */
    public OptionalInt graphLevel() {
        return graphLevel;
    }

    /**
     * Returns the execution accelerators asked for, in the order of the configuration.
     *
     * @return the accelerators; immutable
     */
    public List<Accelerator> accelerators() {
        return accelerators;
    }

    /**
     * Returns the libraries of custom operators ({@code model_operations.op_library_filename}).
     *
     * @return file names relative to the model's folder; immutable
     */
    public List<String> operatorLibraries() {
        return operatorLibraries;
    }

    /**
     * Returns the whole configuration as the protocols print it.
     *
     * @return a JSON object with the configuration's own field names; {@code {}} in tests that give none
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

    /** Collects settings. Confined to one thread. */
    public static final class Builder {
        private final String name;
        private final long version;
        private final List<TensorSpec> inputs = new ArrayList<>();
        private final List<TensorSpec> outputs = new ArrayList<>();
        private final List<BatchInput> batchInputs = new ArrayList<>();
        private final List<BatchOutput> batchOutputs = new ArrayList<>();
        private final Map<String, String> parameters = new LinkedHashMap<>();
        private final List<Accelerator> accelerators = new ArrayList<>();
        private final List<String> operatorLibraries = new ArrayList<>();
        private int maxBatchSize;
        private boolean decoupled;
        private String modelFilename = "";
        private OptionalInt graphLevel = OptionalInt.empty();
        private String json = "{}";

        private Builder(String name, long version) {
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
        public Builder maxBatchSize(int size) {
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
        public Builder decoupled(boolean value) {
            decoupled = value;
            return this;
        }

        /**
         * Adds an input.
         *
         * @param spec the input
         * @return this builder
         */
        public Builder input(TensorSpec spec) {
            inputs.add(spec);
            return this;
        }

        /**
         * Adds an output.
         *
         * @param spec the output
         * @return this builder
         */
        public Builder output(TensorSpec spec) {
            outputs.add(spec);
            return this;
        }

        /**
         * Adds an input that the server derives.
         *
         * @param derived the input
         * @return this builder
         */
        public Builder batchInput(BatchInput derived) {
            batchInputs.add(requireNonNull(derived, "derived"));
            return this;
        }

        /**
         * Adds how outputs are cut.
         *
         * @param cut the outputs, and the input whose shape their parts have
         * @return this builder
         */
        public Builder batchOutput(BatchOutput cut) {
            batchOutputs.add(requireNonNull(cut, "cut"));
            return this;
        }

        /**
         * Adds a free parameter.
         *
         * @param key its key
         * @param value its value
         * @return this builder
         */
        public Builder parameter(String key, String value) {
            parameters.put(key, value);
            return this;
        }

        /**
         * Sets {@link ModelSettings#modelFilename()}.
         *
         * @param filename the name of the model's file or folder
         * @return this builder
         */
        public Builder modelFilename(String filename) {
            modelFilename = requireNonNull(filename, "filename");
            return this;
        }

        /**
         * Sets {@link ModelSettings#graphLevel()}.
         *
         * @param level the level
         * @return this builder
         */
        public Builder graphLevel(int level) {
            graphLevel = OptionalInt.of(level);
            return this;
        }

        /**
         * Adds an execution accelerator.
         *
         * @param accelerator the accelerator
         * @return this builder
         */
        public Builder accelerator(Accelerator accelerator) {
            accelerators.add(accelerator);
            return this;
        }

        /**
         * Adds a library of custom operators.
         *
         * @param filename a file name relative to the model's folder
         * @return this builder
         */
        public Builder operatorLibrary(String filename) {
            operatorLibraries.add(filename);
            return this;
        }

        /**
         * Sets {@link ModelSettings#json()}.
         *
         * @param text a JSON object
         * @return this builder
         */
        public Builder json(String text) {
            json = requireNonNull(text, "text");
            return this;
        }

        /**
         * Makes the settings.
         *
         * @return the settings
         */
        public ModelSettings build() {
            return new ModelSettings(this);
        }
    }
}
