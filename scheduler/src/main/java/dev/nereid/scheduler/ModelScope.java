package dev.nereid.scheduler;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.TensorMemory;
import dev.nereid.scheduler.statistics.ModelMeter;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.time.InstantSource;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;

/**
 * What all requests of one model version share, looked up once. Immutable but for what it counts.
 *
 * @param settings the model's configuration
 * @param memory where gathered inputs and outputs lie
 * @param clientMemory whether the backend works in memory of clients
 * @param nanoTime the clock
 * @param meter counts what becomes of the calls
 * @param inFlight the calls that are not done
 * @param load decides whether another call is taken
 * @param stragglers the calls that neither wait nor are with an instance
 * @param fatalErrors is told of errors after which the process may not be able to serve
 * @param derived the inputs that are derived from the requests of a batch
 * @param inputs the names of all inputs, in the order of the configuration, and behind them those that are derived
 * @param outputs all outputs by name, in the order of the configuration
 * @param outputNotes what was noticed of the outputs that the backend gave
 */
record ModelScope(
        ModelSettings settings,
        TensorMemory memory,
        boolean clientMemory,
        LongSupplier nanoTime,
        ModelMeter meter,
        InFlight inFlight,
        ModelLoad load,
        Stragglers stragglers,
        FatalErrorHandler fatalErrors,
        DerivedInputs derived,
        Set<String> inputs,
        Map<String, OutputSpec> outputs,
        OutputNotes outputNotes) {

    /** Looks up what requests of a model need. */
    static ModelScope of(ModelPlan plan, SchedulerEnvironment environment) {
        ModelSettings settings = plan.settings();
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
        return new ModelScope(
                settings,
                environment.memory(),
                plan.backend().clientMemory(),
                environment.nanoTime(),
                new ModelMeter(environment.wallClock()),
                new InFlight(),
                new ModelLoad(environment.load(), plan.limits()),
                new Stragglers(),
                environment.supervision().fatalErrors(),
                derived,
                Collections.unmodifiableSet(inputs),
                Collections.unmodifiableMap(outputs),
                new OutputNotes(settings, outputs.values()));
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

    /**
     * Returns the same scope for calls that are counted in no figures of the model.
     *
     * @param calls counts those of them that are not done
     */
    ModelScope uncounted(InFlight calls) {
        return new ModelScope(
                settings,
                memory,
                clientMemory,
                nanoTime,
                new ModelMeter(InstantSource.system()),
                calls,
                load,
                stragglers,
                fatalErrors,
                derived,
                inputs,
                outputs,
                outputNotes);
    }

    /** Finds an output that a backend gives. */
    OutputSpec output(String name) throws BackendException {
        OutputSpec spec = outputs.get(name);
        if (spec == null) {
            throw SchedulerErrors.output(
                    settings, name, "not in the configuration (expected: one of " + outputs.keySet() + ")");
        }
        return spec;
    }
}
