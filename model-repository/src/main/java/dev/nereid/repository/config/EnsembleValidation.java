package dev.nereid.repository.config;

import static dev.nereid.repository.config.ConfigErrors.invalid;

import inference.ModelConfig;
import inference.ModelEnsembling;
import inference.ModelInput;
import inference.ModelOutput;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;

/** Checks the steps of ensembles as far as that needs no other model. Static functions only. */
final class EnsembleValidation {
    private static final String PLATFORM = "ensemble";

    private EnsembleValidation() {}

    /**
     * A tensor in the graph of an ensemble. {@code before} has the tensors that it depends on, {@code after} its
     * dependents.
     */
    private static final class Node {
        private final String name;
        private final List<Node> before = new ArrayList<>();
        private final List<Node> after = new ArrayList<>();
        private boolean isOutput;
        private boolean isReady;

        private Node(String name) {
            this.name = name;
        }
    }

    static void check(ModelConfig config) {
        checkFields(config);
        Map<String, Node> nodes = new TreeMap<>();
        for (int i = 0; i < config.getEnsembleScheduling().getStepCount(); i++) {
            add(config, i, nodes);
        }
        findReady(config, nodes);
        checkOutputs(config, nodes);
        checkUse(config, nodes);
    }

    private static void checkFields(ModelConfig config) {
        String model = config.getName();
        if (!config.getPlatform().equals(PLATFORM)) {
            throw invalid(
                    "ensemble scheduling cannot be set for model '" + model + "' whose platform is not " + PLATFORM);
        }
        if (config.getInstanceGroupCount() > 0) {
            throw invalid("instance group should not be specified for ensemble '" + model + "'");
        }
        if (config.hasOptimization()) {
            throw invalid("optimization should not be specified for ensemble '" + model + "'");
        }
        if (config.getModelWarmupCount() > 0) {
            throw invalid("model_warmup can not be specified for ensemble '" + model + "'");
        }
        if (config.getEnsembleScheduling().getStepCount() == 0) {
            throw invalid("must specify 'step' for ensemble '" + model + "'");
        }
    }

    private static void add(ModelConfig config, int index, Map<String, Node> nodes) {
        ModelEnsembling.Step step = config.getEnsembleScheduling().getStep(index);
        checkGiven(!step.getModelName().isEmpty(), "model_name", index, config);
        checkGiven(step.getInputMapCount() > 0, "input_map", index, config);
        checkGiven(step.getOutputMapCount() > 0, "output_map", index, config);
        List<Node> written = new ArrayList<>();
        for (String tensor : new TreeMap<>(step.getOutputMapMap()).values()) {
            Node node = nodes.computeIfAbsent(tensor, Node::new);
            if (node.isOutput) {
                throw invalid("ensemble tensor '" + tensor + "' can appear in an output map only once for ensemble '"
                        + config.getName() + "' step " + index);
            }
            node.isOutput = true;
            written.add(node);
        }
        for (String tensor : new TreeMap<>(step.getInputMapMap()).values()) {
            Node read = nodes.computeIfAbsent(tensor, Node::new);
            for (Node node : written) {
                node.before.add(read);
                read.after.add(node);
            }
        }
    }

    private static void checkGiven(boolean isGiven, String field, int index, ModelConfig config) {
        if (!isGiven) {
            throw invalid("must specify '" + field + "' in step " + index + " of ensemble '" + config.getName() + "'");
        }
    }

    /** Marks the tensors that can be computed from the inputs. */
    private static void findReady(ModelConfig config, Map<String, Node> nodes) {
        Deque<Node> ready = new ArrayDeque<>();
        for (ModelInput input : config.getInputList()) {
            Node node = node(nodes, "input", input.getName(), config);
            node.isReady = true;
            ready.add(node);
        }
        for (Node next = ready.poll(); next != null; next = ready.poll()) {
            for (Node after : next.after) {
                if (!after.isReady && after.before.stream().allMatch(predecessor -> predecessor.isReady)) {
                    after.isReady = true;
                    ready.add(after);
                }
            }
        }
    }

    private static Node node(Map<String, Node> nodes, String kind, String name, ModelConfig config) {
        Node node = nodes.get(name);
        if (node == null) {
            throw invalid("ensemble " + kind + " '" + name + "' for ensemble " + config.getName() + "' is not used");
        }
        return node;
    }

    private static void checkOutputs(ModelConfig config, Map<String, Node> nodes) {
        for (ModelOutput output : config.getOutputList()) {
            Node node = node(nodes, "output", output.getName(), config);
            if (!node.isReady) {
                Optional<Node> missing = node.before.stream()
                        .filter(predecessor -> !predecessor.isReady)
                        .findFirst();
                throw invalid("output '" + output.getName() + "' for ensemble '" + config.getName()
                        + "' is not written"
                        + missing.map(predecessor -> ": at least one of its depending tensors, '" + predecessor.name
                                        + "', is not connected")
                                .orElse(""));
            }
        }
    }

    private static void checkUse(ModelConfig config, Map<String, Node> nodes) {
        Set<String> outputs = new HashSet<>();
        config.getOutputList().forEach(output -> outputs.add(output.getName()));
        for (Node node : nodes.values()) {
            if (!outputs.contains(node.name) && (!node.isReady || node.after.isEmpty())) {
                throw invalid("ensemble tensor '" + node.name + "' is unused in ensemble '" + config.getName() + "'");
            }
        }
    }
}
