package dev.nereid.scheduler.batch;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.scheduler.handle.PluginHandles;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.scheduler.memory.OutputIntegrity;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchOutput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Fence;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Holds the data that all executions of one model version share. Immutable except for its counters.
 *
 * @param accepted the memory in which the backend works
 * @param inputs the names of all inputs, in the order of the configuration, followed by the derived ones
 * @param outputs all outputs by name, in the order of the configuration
 * @param callbacks calls code of the backend outside of its executions
 * @param handles the senders and leases that the backend has
 * @param integrity detects outputs that the backend changes too late
 * @param iterative whether the backend may reschedule requests
 */
public record ExecutionScope(
        ModelScope model,
        AcceptedMemory accepted,
        DerivedInputs derived,
        Set<String> inputs,
        Map<String, OutputSpec> outputs,
        OutputTracker outputTracker,
        BackendCallbacks callbacks,
        PluginHandles handles,
        OutputIntegrity integrity,
        boolean iterative) {
    /** Runs actions on virtual threads, and calls fences as they are. */
    public static final BackendCallbacks DIRECT_CALLBACKS = Thread::startVirtualThread;

    /**
     * Creates the scope of a model without executions that executes each request once.
     *
     * @param accepted the memory in which the backend works
     * @param callbacks calls code of the backend outside of its executions, such as actions of
     *     {@link dev.nereid.spi.ResponseSender#onReady}; never on the calling thread
     */
    public static ExecutionScope of(ModelScope model, AcceptedMemory accepted, BackendCallbacks callbacks) {
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
                accepted,
                derived,
                Collections.unmodifiableSet(inputs),
                Collections.unmodifiableMap(outputs),
                new OutputTracker(settings, outputs.values()),
                callbacks,
                new PluginHandles(callbacks, PluginHandles.Report.NONE),
                new OutputIntegrity(settings, () -> callbacks.stacks(settings), 0),
                false);
    }

    /** Returns the same scope for a backend that may reschedule requests, or not. */
    public ExecutionScope withIterative(boolean changed) {
        return new ExecutionScope(
                model, accepted, derived, inputs, outputs, outputTracker, callbacks, handles, integrity, changed);
    }

    private static Map<String, String> sources(ModelSettings settings) {
        Map<String, String> sources = new HashMap<>();
        for (BatchOutput scattered : settings.batchOutputs()) {
            for (String output : scattered.names()) {
                sources.put(output, scattered.source());
            }
        }
        return sources;
    }

    /** Returns the same scope with another scope of requests. */
    public ExecutionScope with(ModelScope changed) {
        return new ExecutionScope(
                changed, accepted, derived, inputs, outputs, outputTracker, callbacks, handles, integrity, iterative);
    }

    /** Returns the same scope with another check of outputs. */
    public ExecutionScope with(OutputIntegrity changed) {
        return new ExecutionScope(
                model, accepted, derived, inputs, outputs, outputTracker, callbacks, handles, changed, iterative);
    }

    /** Returns an output with a fence that calls the backend's fence as a callback, if the output has one. */
    Tensor isolated(Tensor output) {
        Optional<Fence> fence = output.fence();
        return fence.isPresent() ? output.withFence(callbacks.isolate(fence.get())) : output;
    }

    public boolean clientMemory() {
        return accepted.ofClients();
    }

    /** Returns the same scope, in which wrong outputs are errors of the backend. */
    public ExecutionScope withStrictOutputs() {
        return new ExecutionScope(
                model,
                accepted,
                derived,
                inputs,
                outputs,
                OutputTracker.strict(model.settings(), outputs.values()),
                callbacks,
                handles,
                integrity,
                iterative);
    }

    /** Returns the same scope with another receiver of reports about handles that the backend has forgotten. */
    public ExecutionScope with(PluginHandles.Report report) {
        return new ExecutionScope(
                model,
                accepted,
                derived,
                inputs,
                outputs,
                outputTracker,
                callbacks,
                handles.with(report),
                integrity,
                iterative);
    }

    /** Returns whether the backend may read inputs as long as it can reach them. */
    boolean tracksInputs() {
        return model.settings().decoupled() || handles.areUsed();
    }

    /**
     * Returns an output by name, type and shape as the backend gives them. One that the configuration does not have is
     * reported, and is not {@linkplain OutputSpec#isKnown known}.
     *
     * @throws BackendException if the configuration has no such output, and wrong outputs are errors
     */
    OutputSpec output(String name, DataType type, Shape shape) {
        OutputSpec spec = outputs.get(name);
        if (spec == null) {
            spec = OutputSpec.unknown(name, type, shape);
            outputTracker.reportUnknown(spec);
        }
        return spec;
    }
}
