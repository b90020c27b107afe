package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelDynamicBatching;
import inference.ModelInput;
import inference.ModelOutput;
import inference.ModelTensorReshape;
import inference.ModelTransactionPolicy;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;

/** Completes a configuration from the names of the model's files, then from its backend. */
public final class ConfigCompletion {
    private static final String SAVED_MODEL = "tensorflow_savedmodel";
    private static final String GRAPH_DEF = "tensorflow_graphdef";
    private static final String SAVED_MODEL_DIRECTORY = "model.savedmodel";
    private static final String GRAPH_DEF_FILE = "model.graphdef";

    /** The number of tensors that a warning names. */
    private static final int MAX_NAMED = 10;

    /**
     * A framework, recognized by its platforms or by a fixed file name.
     *
     * @param platforms the platforms of the backend; the first is filled in if there is none
     * @param mayBeDirectory whether the model may be a directory of that name as well
     */
    private record Framework(String backend, List<String> platforms, String filename, boolean mayBeDirectory) {
        boolean fits(ModelConfig.Builder config, VersionEntries entries) {
            if (platforms.contains(config.getPlatform())
                    || config.getDefaultModelFilename().equals(filename)) {
                return true;
            }
            return isBlank(config) && (entries.hasFile(filename) || (mayBeDirectory && entries.hasDirectory(filename)));
        }

        void fill(ModelConfig.Builder config) {
            config.setBackend(backend);
            if (config.getPlatform().equals(LIBTORCH)) {
                return; // the backend knows the name of its file; the reference server leaves it open
            }
            if (config.getPlatform().isEmpty() && !platforms.isEmpty()) {
                config.setPlatform(platforms.getFirst());
            }
            if (config.getDefaultModelFilename().isEmpty()) {
                config.setDefaultModelFilename(filename);
            }
        }
    }

    /** Entries of a version directory; names of directories end in a slash. */
    private record VersionEntries(Set<String> names) {
        boolean hasFile(String name) {
            return names.contains(name);
        }

        boolean hasDirectory(String name) {
            return names.contains(name + "/");
        }
    }

    private static final String LIBTORCH = "pytorch_libtorch";

    /** In the order in which they are tried; TensorFlow precedes them. */
    private static final List<Framework> FRAMEWORKS = List.of(
            new Framework("tensorrt", List.of("tensorrt_plan"), "model.plan", false),
            new Framework("onnxruntime", List.of("onnxruntime_onnx"), "model.onnx", true),
            new Framework("openvino", List.of(), "model.xml", true),
            new Framework("pytorch", List.of(LIBTORCH, "libtorch"), "model.pt", false),
            new Framework("pytorch", List.of("torch_aoti"), "model.pt2", false),
            new Framework("python", List.of(), "model.py", true));

    private ConfigCompletion() {}

    /**
     * Fills in name, backend, platform and file name. They follow, as far as possible, from the directories and files
     * of a model.
     *
     * @param config the configuration as read; empty if the model has none
     * @param versionEntries the entries of the first version's directory, in the order of the names as text; names of
     *     directories end in {@code /}; empty if there is no version
     * @return the completed configuration
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the backend cannot be determined
     */
    public static ModelConfig fromFiles(ModelConfig config, String directoryName, Set<String> versionEntries) {
        ModelConfig.Builder completed = config.toBuilder();
        if (completed.getName().isEmpty()) {
            completed.setName(directoryName);
        }
        completeBackend(completed, directoryName, new VersionEntries(versionEntries));
        return completed.build();
    }

    private static void completeBackend(ModelConfig.Builder config, String directoryName, VersionEntries entries) {
        completeTensorFlowPlatform(config, entries);
        if (config.getPlatform().equals(SAVED_MODEL) || config.getPlatform().equals(GRAPH_DEF)) {
            completeTensorFlow(config);
            return;
        }
        for (Framework framework : FRAMEWORKS) {
            if (config.getBackend().isEmpty() ? framework.fits(config, entries) : isGiven(framework, config)) {
                framework.fill(config);
                return;
            }
        }
        if (config.getBackend().isEmpty() && isBlank(config)) {
            completeFromName(config, directoryName);
        }
    }

    private static void completeTensorFlowPlatform(ModelConfig.Builder config, VersionEntries entries) {
        boolean mayBeTensorFlow =
                config.getBackend().isEmpty() || config.getBackend().equals("tensorflow");
        if (!config.getPlatform().isEmpty() || !mayBeTensorFlow) {
            return;
        }
        String filename = config.getDefaultModelFilename();
        // A directory with both is a graph: the reference checks for the graph last.
        if (filename.equals(GRAPH_DEF_FILE) || (filename.isEmpty() && entries.hasFile(GRAPH_DEF_FILE))) {
            config.setPlatform(GRAPH_DEF);
        } else if (filename.equals(SAVED_MODEL_DIRECTORY)
                || (filename.isEmpty() && entries.hasDirectory(SAVED_MODEL_DIRECTORY))) {
            config.setPlatform(SAVED_MODEL);
        }
    }

    private static void completeTensorFlow(ModelConfig.Builder config) {
        if (config.getBackend().isEmpty()) {
            config.setBackend("tensorflow");
        }
        if (config.getDefaultModelFilename().isEmpty()) {
            config.setDefaultModelFilename(
                    config.getPlatform().equals(SAVED_MODEL) ? SAVED_MODEL_DIRECTORY : GRAPH_DEF_FILE);
        }
    }

    /** Returns whether the configuration names the framework's backend, and no platform but the framework's. */
    private static boolean isGiven(Framework framework, ModelConfig.Builder config) {
        List<String> platforms = framework.platforms();
        return framework.backend().equals(config.getBackend())
                && (config.getPlatform().isEmpty() || platforms.isEmpty() || platforms.contains(config.getPlatform()));
    }

    private static void completeFromName(ModelConfig.Builder config, String directoryName) {
        int dot = directoryName.indexOf('.');
        if (dot < 0) {
            throw invalid("Invalid model name: Could not determine backend for model '" + directoryName
                    + "' with no backend in model configuration. Expected model name of the form"
                    + " 'model.<backend_name>'.");
        }
        String backend = directoryName.substring(dot + 1);
        config.setBackend(backend).setDefaultModelFilename("model." + backend);
    }

    /** Returns whether platform and file name leave the backend open. The files may determine it then. */
    private static boolean isBlank(ModelConfig.Builder config) {
        return config.getPlatform().isEmpty()
                && config.getDefaultModelFilename().isEmpty();
    }

    /**
     * Adds the properties that a backend found in a model. The inputs and the outputs replace the configured ones;
     * {@link #replaced} warns of this. Configured label files and image formats are kept, since no backend has them.
     * The largest batch, dynamic batching and the transaction policy are taken over only if the configuration has none.
     * The reference server also lets a backend replace a configured largest batch; none of its backends but that for
     * Python does so, and a configured value of these is never changed here.
     *
     * @param config the configuration so far
     * @param completion the result of the backend
     * @return the completed configuration, to be normalized again
     */
    public static ModelConfig merge(ModelConfig config, ModelCompletion completion) {
        ModelConfig.Builder merged = config.toBuilder();
        if (config.getMaxBatchSize() == 0) {
            completion.proposedMaxBatchSize().ifPresent(merged::setMaxBatchSize);
        }
        if (!completion.inputs().isEmpty()) {
            merged.clearInput();
            completion.inputs().forEach(spec -> merged.addInput(input(spec, config)));
        }
        if (!completion.outputs().isEmpty()) {
            merged.clearOutput();
            completion.outputs().forEach(spec -> merged.addOutput(output(spec, config)));
        }
        if (merged.getSchedulingChoiceCase() == ModelConfig.SchedulingChoiceCase.SCHEDULINGCHOICE_NOT_SET) {
            if (completion.dynamicBatching()) {
                merged.setDynamicBatching(ModelDynamicBatching.getDefaultInstance());
            }
            completion.scheduling().ifPresent(json -> addScheduling(merged, json));
        }
        if (completion.decoupled().isPresent() && !merged.hasModelTransactionPolicy()) {
            merged.setModelTransactionPolicy(ModelTransactionPolicy.newBuilder()
                    .setDecoupled(completion.decoupled().get()));
        }
        return merged.build();
    }

    private static void addScheduling(ModelConfig.Builder config, String json) {
        String subject =
                "model '" + config.getName() + "': scheduling that backend '" + config.getBackend() + "' adds: ";
        ModelConfig added;
        try {
            added = ModelConfigJsonReader.read(json);
        } catch (InferenceException e) {
            throw invalid(subject + e.getMessage());
        }
        switch (added.getSchedulingChoiceCase()) {
            case DYNAMIC_BATCHING -> config.setDynamicBatching(added.getDynamicBatching());
            case SEQUENCE_BATCHING -> config.setSequenceBatching(added.getSequenceBatching());
            case ENSEMBLE_SCHEDULING, SCHEDULINGCHOICE_NOT_SET ->
                throw invalid(subject + added.getSchedulingChoiceCase()
                        + " (expected: dynamic_batching or sequence_batching)");
        }
    }

    /**
     * Refuses a configuration that asks for larger batches than its backend allows.
     *
     * @param config the configuration, before the completion is merged
     * @param completion the result of the backend
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the largest batch is beyond the limit
     */
    public static void checkBatchSize(ModelConfig config, ModelCompletion completion) {
        OptionalInt limit = completion.maxBatchSizeLimit();
        if (limit.isPresent() && config.getMaxBatchSize() > limit.getAsInt()) {
            throw invalid("model '" + config.getName() + "': max_batch_size: " + config.getMaxBatchSize()
                    + " (expected: at most " + limit.getAsInt() + ", which backend '" + config.getBackend()
                    + "' allows)");
        }
    }

    /**
     * Returns a completion that keeps to the largest batch that an owner wrote into a configuration. A 0 means that the
     * first dimension of the tensors is no batch: where the backend takes it for one, the tensors get it back. The
     * reference server takes a 0 that is written for none.
     *
     * @param config the configuration, with its largest batch as written
     * @param completion the result of the backend
     * @return the completion, without batching if the configuration has none
     */
    public static ModelCompletion withinBatchSize(ModelConfig config, ModelCompletion completion) {
        if (config.getMaxBatchSize() != 0 || completion.proposedMaxBatchSize().orElse(0) == 0) {
            return completion;
        }
        ModelCompletion kept = ModelCompletion.EMPTY
                .withInputs(withFirstDimension(completion.inputs()))
                .withOutputs(withFirstDimension(completion.outputs()));
        return completion.decoupled().map(kept::withDecoupled).orElse(kept);
    }

    private static List<TensorSpec> withFirstDimension(List<TensorSpec> specs) {
        return specs.stream().map(ConfigCompletion::withFirstDimension).toList();
    }

    private static TensorSpec withFirstDimension(TensorSpec spec) {
        if (spec.is(TensorSpec.Trait.SHAPE_TENSOR)) {
            return spec; // which never has a batch dimension
        }
        Shape dims = spec.backendDims().prepend(Shape.VARIABLE);
        TensorSpec whole = TensorSpec.of(spec.name(), spec.type(), dims);
        for (TensorSpec.Trait trait : TensorSpec.Trait.values()) {
            whole = spec.is(trait) && trait != TensorSpec.Trait.RAGGED ? whole.with(trait) : whole;
        }
        return whole;
    }

    private static ModelInput input(TensorSpec found, ModelConfig config) {
        ModelInput.Builder input = TensorSpecs.input(found).toBuilder();
        for (ModelInput configured : config.getInputList()) {
            if (configured.getName().equals(found.name())) {
                input.setFormatValue(configured.getFormatValue());
            }
        }
        return input.build();
    }

    private static ModelOutput output(TensorSpec found, ModelConfig config) {
        ModelOutput.Builder output = TensorSpecs.output(found).toBuilder();
        for (ModelOutput configured : config.getOutputList()) {
            if (configured.getName().equals(found.name())) {
                output.setLabelFilename(configured.getLabelFilename());
            }
        }
        return output.build();
    }

    /**
     * Describes the configured tensors that the backend has replaced by other ones. It skips tensors that only gained
     * missing properties, and the tensors of a list that is not configured.
     *
     * @param config the configuration before its completion
     * @return one warning with all of them; empty if all is as configured
     */
    public static List<String> replaced(ModelConfig config, ModelConfig completed, long version) {
        boolean gainsBatch = config.getMaxBatchSize() == 0 && completed.getMaxBatchSize() > 0;
        List<String> tensors = new ArrayList<>();
        addReplaced(tensors, "input", config.getInputList(), completed.getInputList(), gainsBatch);
        addReplaced(tensors, "output", config.getOutputList(), completed.getOutputList(), gainsBatch);
        if (tensors.isEmpty()) {
            return List.of();
        }
        int more = tensors.size() - MAX_NAMED;
        return List.of("model '" + completed.getName() + "', version " + version + ": backend '"
                + completed.getBackend() + "' replaces configured tensors: "
                + String.join("; ", tensors.subList(0, Math.min(MAX_NAMED, tensors.size())))
                + (more > 0 ? "; and " + more + " more" : ""));
    }

    private static void addReplaced(
            List<String> tensors,
            String role,
            List<? extends Message> configured,
            List<? extends Message> completed,
            boolean gainsBatch) {
        if (configured.isEmpty()) {
            return;
        }
        Map<String, Message> added = new LinkedHashMap<>();
        completed.forEach(tensor -> added.put(name(tensor), tensor));
        for (Message tensor : configured) {
            Message now = added.remove(name(tensor));
            List<String> changes = now == null ? List.of("removed") : changes(tensor, now, gainsBatch);
            if (!changes.isEmpty()) {
                tensors.add(role + " '" + name(tensor) + "' " + String.join(", ", changes));
            }
        }
        added.keySet().forEach(name -> tensors.add(role + " '" + name + "' added"));
    }

    /** Returns the configured values of a tensor that are others now. */
    private static List<String> changes(Message configured, Message completed, boolean gainsBatch) {
        List<String> changes = new ArrayList<>();
        for (FieldDescriptor field : configured.getAllFields().keySet()) {
            String before = text(configured, field);
            String now = text(completed, field);
            boolean isSame = before.equals(now)
                    || (gainsBatch && field.getName().equals("dims") && before.equals(withBatch(completed, field)));
            if (!isSame) {
                changes.add(field.getName() + " " + before + " → " + now);
            }
        }
        return changes;
    }

    /** Returns the dimensions of a tensor with the batch dimension, which a configuration without batching has. */
    private static String withBatch(Message tensor, FieldDescriptor dims) {
        List<Object> all = new ArrayList<>(List.of(Shape.VARIABLE));
        all.addAll((List<?>) tensor.getField(dims));
        return all.toString();
    }

    private static String text(Message tensor, FieldDescriptor field) {
        return switch (tensor.getField(field)) {
            case EnumValueDescriptor value -> value.getName();
            case ModelTensorReshape reshape ->
                tensor.hasField(field) ? reshape.getShapeList().toString() : "none";
            case Object value -> value.toString();
        };
    }

    private static String name(Message tensor) {
        return (String) tensor.getField(tensor.getDescriptorForType().findFieldByName("name"));
    }
}
