package dev.nereid.scheduler.batch;

import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * Holds what all executions of one model version share. Immutable but for its counters.
 *
 * @param model what all its requests share
 * @param clientMemory whether the backend works in memory of clients
 * @param derived the inputs that are derived from the requests of a batch
 * @param inputs the names of all inputs, in the order of the configuration, and behind them those that are derived
 * @param outputs all outputs by name, in the order of the configuration
 * @param outputTracker the outputs that the backend gave so far
 */
public record ExecutionScope(
        ModelScope model,
        boolean clientMemory,
        DerivedInputs derived,
        Set<String> inputs,
        Map<String, OutputSpec> outputs,
        OutputTracker outputTracker) {

    /**
     * Makes the scope of a model without executions.
     *
     * @param clientMemory whether the backend works in memory of clients
     */
    public static ExecutionScope of(ModelScope model, boolean clientMemory) {
        ModelSettings settings = model.settings();
        Set<String> inputs = new LinkedHashSet<>();
        for (TensorSpec input : settings.inputs()) {
            inputs.add(input.name());
        }
        DerivedInputs derived = new DerivedInputs(settings);
        derived.addTo(inputs);
        Map<String, String> sources = sources(settings);
        Map<String, OutputSpec> outputs = new LinkedHashMap<>();
        for (TensorSpec output : settings.outputs()) {
            boolean batched = settings.batches() && !output.is(TensorSpec.Trait.SHAPE_TENSOR);
            OutputSpec spec = new OutputSpec(
                    outputs.size(), output, batched, output.reshape().isPresent(), sources.get(output.name()));
            outputs.put(output.name(), spec);
        }
        return new ExecutionScope(
                model,
                clientMemory,
                derived,
                Collections.unmodifiableSet(inputs),
                Collections.unmodifiableMap(outputs),
                new OutputTracker(settings, outputs.values()));
    }

    private static Map<String, String> sources(ModelSettings settings) {
        Map<String, String> sources = new HashMap<>();
        for (BatchOutput cut : settings.batchOutputs()) {
            for (String output : cut.names()) {
                sources.put(output, cut.source());
            }
        }
        return sources;
    }

    /** Returns the same scope with another scope of requests. */
    public ExecutionScope with(ModelScope changed) {
        return new ExecutionScope(changed, clientMemory, derived, inputs, outputs, outputTracker);
    }

    /** Finds an output that a backend gives. */
    OutputSpec output(String name) throws BackendException {
        OutputSpec spec = outputs.get(name);
        if (spec == null) {
            throw SchedulerErrors.output(
                    model.settings(), name, "not in the configuration (expected: one of " + outputs.keySet() + ")");
        }
        return spec;
    }
}
