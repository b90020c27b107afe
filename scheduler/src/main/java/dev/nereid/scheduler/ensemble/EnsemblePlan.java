package dev.nereid.scheduler.ensemble;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.RequestedOutput;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The data flow of an ensemble, with tensors and steps as numbers. Immutable except for a cache and sizes; safe for use
 * by any thread.
 *
 * <p>The depth of a tensor is the number of decoupled steps on which it depends. There is one decoupled step at each
 * depth at most, since all tensors lead to outputs of the ensemble, which are joined.
 */
public final class EnsemblePlan {
    /** The maximum number of selections of outputs that are kept. */
    private static final int MAX_SELECTIONS = 64;

    private final ModelSettings settings;
    private final StepPlan[] steps;
    private final int[] depths;
    private final int[] inputs;
    private final int[] outputs;
    private final EnsembleLimits limits;
    private final OutputSelection all;
    private final Map<List<String>, OutputSelection> selections = new ConcurrentHashMap<>();

    /** The bytes of the last outputs of each step that ran after a decoupled one. */
    private final AtomicLongArray lastOutputBytes;

    private EnsemblePlan(
            ModelSettings settings,
            StepPlan[] steps,
            int[] depths,
            int[] inputs,
            int[] outputs,
            EnsembleLimits limits) {
        this.settings = settings;
        this.steps = steps;
        this.depths = depths;
        this.inputs = inputs;
        this.outputs = outputs;
        this.limits = limits;
        all = OutputSelection.of(this, outputs);
        lastOutputBytes = new AtomicLongArray(steps.length);
    }

    /**
     * Creates the plan of an ensemble with a checked configuration.
     *
     * @throws IllegalArgumentException if a tensor is never written
     */
    public static EnsemblePlan of(ModelSettings settings, List<StepDefinition> steps, EnsembleLimits limits) {
        Map<String, Integer> numbers = new LinkedHashMap<>();
        settings.inputs().forEach(input -> number(numbers, input.name()));
        steps.forEach(step -> {
            step.inputs().values().forEach(tensor -> number(numbers, tensor));
            step.outputs().values().forEach(tensor -> number(numbers, tensor));
        });
        int[] inputs = numbers(numbers, settings.inputs());
        int[] depths = depths(steps, numbers, inputs);
        Set<String> results = settings.outputs().stream().map(TensorSpec::name).collect(Collectors.toSet());
        StepPlan[] plans = new StepPlan[steps.size()];
        for (int i = 0; i < plans.length; i++) {
            plans[i] = plan(i, steps, numbers, depths, results);
        }
        return new EnsemblePlan(settings, plans, depths, inputs, numbers(numbers, settings.outputs()), limits);
    }

    private static void number(Map<String, Integer> numbers, String tensor) {
        numbers.putIfAbsent(tensor, numbers.size());
    }

    private static int[] numbers(Map<String, Integer> numbers, List<TensorSpec> tensors) {
        return tensors.stream()
                .mapToInt(tensor -> {
                    Integer number = numbers.get(tensor.name());
                    if (number == null) {
                        throw unwritten(tensor.name());
                    }
                    return number;
                })
                .toArray();
    }

    private static IllegalArgumentException unwritten(String tensor) {
        return new IllegalArgumentException("steps: tensor '" + tensor + "' (expected: written by a step)");
    }

    /** Returns the depth of each tensor. Each round finds the depths of the outputs of at least one more step. */
    private static int[] depths(List<StepDefinition> steps, Map<String, Integer> numbers, int[] inputs) {
        int[] depths = new int[numbers.size()];
        Arrays.fill(depths, -1);
        Arrays.stream(inputs).forEach(input -> depths[input] = 0);
        List<StepDefinition> open = new ArrayList<>(steps);
        while (open.removeIf(step -> findDepths(step, numbers, depths))) {}
        if (!open.isEmpty()) {
            throw unwritten(open.getFirst().inputs().values().toString());
        }
        return depths;
    }

    private static boolean findDepths(StepDefinition step, Map<String, Integer> numbers, int[] depths) {
        int depth = 0;
        for (String tensor : step.inputs().values()) {
            int one = depths[requireNonNull(numbers.get(tensor))];
            if (one < 0) {
                return false;
            }
            depth = Math.max(depth, one);
        }
        for (String tensor : step.outputs().values()) {
            depths[requireNonNull(numbers.get(tensor))] = step.decoupled() ? depth + 1 : depth;
        }
        return true;
    }

    private static StepPlan plan(
            int index, List<StepDefinition> steps, Map<String, Integer> numbers, int[] depths, Set<String> results) {
        StepDefinition step = steps.get(index);
        Map<String, String> inputs = new TreeMap<>(step.inputs());
        Map<String, String> outputs = new TreeMap<>(step.outputs());
        int[] inputTensors = inputs.values().stream().mapToInt(numbers::get).toArray();
        int depth =
                Arrays.stream(inputTensors).map(tensor -> depths[tensor]).max().orElse(0);
        return new StepPlan(
                index,
                step.model(),
                depth,
                step.decoupled(),
                inputs.keySet().toArray(String[]::new),
                inputTensors,
                Arrays.stream(inputTensors).distinct().toArray(),
                outputs.keySet().toArray(String[]::new),
                outputs.values().stream().mapToInt(numbers::get).toArray(),
                outputs.entrySet().stream()
                        .map(output -> results.contains(output.getValue())
                                ? RequestedOutput.of(output.getKey())
                                : RequestedOutput.inAnyPlace(output.getKey()))
                        .toList(),
                outputs.keySet().stream().map(RequestedOutput::of).toList(),
                readers(step, steps));
    }

    private static int[] readers(StepDefinition step, List<StepDefinition> steps) {
        return IntStream.range(0, steps.size())
                .filter(reader -> !Collections.disjoint(
                        steps.get(reader).inputs().values(), step.outputs().values()))
                .toArray();
    }

    public ModelSettings settings() {
        return settings;
    }

    /** Returns whether requests have any number of responses. */
    boolean isDecoupled() {
        return settings.decoupled();
    }

    EnsembleLimits limits() {
        return limits;
    }

    int stepCount() {
        return steps.length;
    }

    StepPlan step(int index) {
        return steps[index];
    }

    /** Returns the bytes of the last outputs of a step that were counted; 0 if none were. */
    long lastOutputBytes(int step) {
        return lastOutputBytes.get(step);
    }

    void setLastOutputBytes(int step, long bytes) {
        lastOutputBytes.setRelease(step, bytes);
    }

    int tensorCount() {
        return depths.length;
    }

    int depth(int tensor) {
        return depths[tensor];
    }

    int input(int index) {
        return inputs[index];
    }

    TensorSpec output(int tensor) {
        for (int i = 0; i < outputs.length; i++) {
            if (outputs[i] == tensor) {
                return settings.outputs().get(i);
            }
        }
        throw new IllegalArgumentException("tensor: " + tensor + " (expected: an output of the ensemble)");
    }

    /** Returns the selection for the outputs that a request names, in the order of the configuration. */
    OutputSelection select(List<String> requested) {
        if (requested.size() == outputs.length) {
            return all;
        }
        OutputSelection known = selections.get(requested);
        if (known != null) {
            return known;
        }
        int[] selected = new int[requested.size()];
        List<TensorSpec> specs = settings.outputs();
        int count = 0;
        for (int i = 0; i < specs.size(); i++) {
            if (requested.contains(specs.get(i).name())) {
                selected[count++] = outputs[i];
            }
        }
        OutputSelection selection = OutputSelection.of(this, selected);
        if (selections.size() < MAX_SELECTIONS) {
            selections.put(List.copyOf(requested), selection);
        }
        return selection;
    }

    /**
     * One step of an ensemble as it is configured. Immutable.
     *
     * @param inputs the ensemble tensor of each input of the model
     * @param outputs the ensemble tensor of each output of the model
     * @param decoupled whether the model sends any number of responses
     */
    public record StepDefinition(
            String model, Map<String, String> inputs, Map<String, String> outputs, boolean decoupled) {
        /** Checks and copies the components. */
        public StepDefinition {
            requireNonNull(model, "model");
            inputs = Map.copyOf(inputs);
            outputs = Map.copyOf(outputs);
        }
    }
}
