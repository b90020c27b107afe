package dev.nereid.scheduler.ensemble;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/**
 * A random ensemble of at most twelve steps, and what it computes if its steps run one after another. Tensors have one
 * number; each output depends on the step, its inputs and the number of the response.
 */
final class RandomEnsemble {
    private static final int MAX_STEPS = 12;
    private static final int MAX_RESPONSES = 3;

    /** The bytes that a response with two outputs counts. */
    private static final long MAX_RESPONSE_BYTES = 512 + 2 * Long.BYTES;

    private final Random random;
    private final List<EnsemblePlan.StepDefinition> steps = new ArrayList<>();

    /** The number of decoupled steps before each tensor. */
    private final Map<String, Integer> depths = new LinkedHashMap<>();

    private final List<String> outputs = new ArrayList<>();
    private final int inputCount;
    private final boolean omitsInputs;
    private final boolean fails;
    private int chain;

    RandomEnsemble(long seed) {
        random = new Random(seed);
        fails = random.nextInt(3) == 0;
        inputCount = 1 + random.nextInt(2);
        omitsInputs = random.nextInt(3) == 0;
        for (int i = 0; i < inputCount; i++) {
            depths.put("in" + i, 0);
        }
        int count = 1 + random.nextInt(MAX_STEPS);
        for (int i = 0; i < count; i++) {
            addStep(i);
        }
        Set<String> read = new LinkedHashSet<>();
        steps.forEach(step -> read.addAll(step.inputs().values()));
        for (String tensor : depths.keySet()) {
            boolean isInput = tensor.startsWith("in");
            if (!isInput && (!read.contains(tensor) || random.nextInt(4) == 0)) {
                outputs.add(tensor);
            }
        }
    }

    private void addStep(int index) {
        List<String> known = List.copyOf(depths.keySet());
        Map<String, String> inputs = new TreeMap<>();
        int depth = 0;
        int count = 1 + random.nextInt(3);
        for (int i = 0; i < count; i++) {
            String tensor = known.get(random.nextInt(known.size()));
            inputs.put("i" + i, tensor);
            depth = Math.max(depth, depths.get(tensor));
        }
        boolean decoupled = depth == chain && chain < 3 && random.nextInt(4) == 0;
        if (decoupled) {
            chain++;
        }
        Map<String, String> written = new TreeMap<>();
        for (int i = 0; i <= random.nextInt(2); i++) {
            String tensor = "t" + index + "_" + i;
            written.put("o" + i, tensor);
            depths.put(tensor, decoupled ? depth + 1 : depth);
        }
        steps.add(new EnsemblePlan.StepDefinition("s" + index, inputs, written, decoupled));
    }

    private static TensorSpec spec(String name) {
        return TensorSpec.of(name, DataType.INT64, Shape.of(1));
    }

    private static TensorSpec optional(String name) {
        return spec(name).with(TensorSpec.Trait.OPTIONAL);
    }

    ModelSettings settings() {
        ModelSettingsBuilder settings = ModelSettings.builder("e", 1).decoupled(chain > 0);
        for (int i = 0; i < inputCount; i++) {
            settings.input(optional("in" + i));
        }
        outputs.forEach(output -> settings.output(spec(output)));
        return settings.build();
    }

    List<ModelSettings> stepSettings() {
        List<ModelSettings> all = new ArrayList<>();
        for (EnsemblePlan.StepDefinition step : steps) {
            ModelSettingsBuilder settings =
                    ModelSettings.builder(step.model(), 1).decoupled(step.decoupled());
            step.inputs().keySet().forEach(input -> settings.input(optional(input)));
            step.outputs().keySet().forEach(output -> settings.output(spec(output)));
            all.add(settings.build());
        }
        return all;
    }

    EnsemblePlan plan(EnsembleLimits limits) {
        List<EnsemblePlan.StepDefinition> shuffled =
                new ArrayList<>(steps); // the plan does not depend on the order of numbers
        return EnsemblePlan.of(settings(), shuffled, limits);
    }

    Map<String, Long> inputs() {
        Map<String, Long> inputs = new LinkedHashMap<>();
        for (int i = 0; i < inputCount; i++) {
            long value = random.nextInt(1000);
            if (!omitsInputs || random.nextBoolean()) {
                inputs.put("in" + i, value);
            }
        }
        return inputs;
    }

    List<String> requested() {
        List<String> requested = new ArrayList<>();
        for (String output : outputs) {
            if (random.nextBoolean()) {
                requested.add(output);
            }
        }
        return requested.isEmpty() ? List.of(outputs.get(random.nextInt(outputs.size()))) : requested;
    }

    /** Returns all outputs, in the order of the configuration. */
    List<String> outputs() {
        return outputs;
    }

    /** Returns whether requests have any number of responses. */
    boolean isDecoupled() {
        return chain > 0;
    }

    /**
     * Returns a byte limit that the responses of decoupled steps alone never exceed: those of one step are not limited, as
     * they are few.
     */
    long leastBytes() {
        long iterations = 0;
        for (int i = 1, of = MAX_RESPONSES; i <= chain; i++, of *= MAX_RESPONSES) {
            iterations += of;
        }
        return chain > 1 ? iterations * MAX_RESPONSE_BYTES : 0;
    }

    /** Returns how many responses a step sends. */
    int responses(int step, Map<String, Long> inputs, int generation) {
        return steps.get(step).decoupled()
                ? Math.floorMod(Objects.hash(step, inputs, generation, "count"), MAX_RESPONSES + 1)
                : 1;
    }

    boolean fails(int step, Map<String, Long> inputs, int generation) {
        return fails && Math.floorMod(Objects.hash(step, inputs, generation, "fail"), 12) == 0;
    }

    /** Returns how many responses a step that fails sends before; at most as many as one that does not. */
    int responsesBeforeFailure(int step, Map<String, Long> inputs, int generation) {
        int count = responses(step, inputs, generation);
        return steps.get(step).decoupled() && count > 0
                ? Math.floorMod(Objects.hash(step, inputs, generation, "before"), count + 1)
                : 0;
    }

    /** Returns the outputs of one response, some of which may be missing. */
    Map<String, Long> outputs(int step, Map<String, Long> inputs, int response, int generation) {
        Map<String, Long> values = new TreeMap<>();
        for (String output : steps.get(step).outputs().keySet()) {
            int hash = Objects.hash(step, inputs, response, generation, output);
            if (Math.floorMod(hash, 9) != 0) {
                values.put(output, (long) hash);
            }
        }
        return values;
    }

    /** The expected outcome of one request. */
    record Expected(List<Map<String, Long>> responses, boolean mayFail) {}

    /** Computes the responses to a request. */
    Expected interpret(Map<String, Long> inputs, List<String> requested, int generation) {
        Interpreter interpreter = new Interpreter(requested, generation);
        int depth = requested.stream().mapToInt(depths::get).max().orElseThrow();
        List<Map<String, Long>> responses = new ArrayList<>();
        interpreter.run(0, depth, new HashMap<>(inputs), responses);
        return new Expected(responses, interpreter.failed);
    }

    /** Runs the steps of each depth after one another; the values of tensors without content are {@code null}. */
    private final class Interpreter {
        private final List<String> requested;
        private final int generation;
        private final Set<Integer> needed = new LinkedHashSet<>();
        private boolean failed;

        Interpreter(List<String> requested, int generation) {
            this.requested = requested;
            this.generation = generation;
            requested.forEach(this::need);
        }

        private void need(String tensor) {
            for (int i = 0; i < steps.size(); i++) {
                if (steps.get(i).outputs().containsValue(tensor) && needed.add(i)) {
                    steps.get(i).inputs().values().forEach(this::need);
                }
            }
        }

        private void run(int depth, int last, Map<String, Long> values, List<Map<String, Long>> responses) {
            int decoupled = -1;
            for (int i = 0; i < steps.size(); i++) {
                if (!needed.contains(i) || depthOf(i) != depth) {
                    continue;
                }
                if (fails(i, given(i, values), generation)) {
                    failed = true;
                }
                if (steps.get(i).decoupled()) {
                    decoupled = i;
                } else {
                    put(i, outputs(i, given(i, values), 0, generation), values);
                }
            }
            if (depth == last) {
                Map<String, Long> response = new TreeMap<>();
                for (String output : requested) {
                    if (values.get(output) != null) {
                        response.put(output, values.get(output));
                    }
                }
                responses.add(response);
                return;
            }
            Map<String, Long> given = given(decoupled, values);
            for (int i = 0; i < responses(decoupled, given, generation); i++) {
                Map<String, Long> next = new HashMap<>(values);
                put(decoupled, outputs(decoupled, given, i, generation), next);
                run(depth + 1, last, next, responses);
            }
        }

        private int depthOf(int step) {
            return steps.get(step).inputs().values().stream()
                    .mapToInt(depths::get)
                    .max()
                    .orElse(0);
        }

        private Map<String, Long> given(int step, Map<String, Long> values) {
            Map<String, Long> given = new TreeMap<>();
            steps.get(step).inputs().forEach((input, tensor) -> {
                if (values.get(tensor) != null) {
                    given.put(input, values.get(tensor));
                }
            });
            return given;
        }

        private void put(int step, Map<String, Long> outputs, Map<String, Long> values) {
            steps.get(step).outputs().forEach((output, tensor) -> values.put(tensor, outputs.get(output)));
        }
    }
}
