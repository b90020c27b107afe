package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Forwards to a plugin's model through the plugin boundary. As safe for concurrent use as the model. It has no padded inputs
 * if the model is not a {@link PaddedModel}.
 */
final class IsolatedModel implements PaddedModel {
    private final Model model;
    private final PluginBoundary boundary;
    private final Optional<BackendTraits.Execution> execution;
    private final Map<String, Shape> paddedInputs;

    /** Set when a call that is repeated every second has failed, so that the failure is logged once. */
    private volatile boolean memoryFailed;

    /** Wraps a model, and reads its constant properties. */
    IsolatedModel(Model model, PluginBoundary boundary) {
        this.model = model;
        this.boundary = boundary;
        execution = boundary.invoke("Model.execution", model::execution);
        paddedInputs = model instanceof PaddedModel padded
                ? boundary.invoke("PaddedModel.paddedInputs", () -> Map.copyOf(padded.paddedInputs()))
                : Map.of();
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        return new IsolatedInstance(boundary.invoke("Model.newInstance", () -> model.newInstance(context)), boundary);
    }

    @Override
    public Optional<BackendTraits.Execution> execution() {
        return execution;
    }

    @Override
    public Optional<BatchingStrategy> batching() {
        return boundary.invoke("Model.batching", model::batching)
                .map(strategy -> new IsolatedBatchingStrategy(strategy, boundary));
    }

    @Override
    public Map<String, Shape> paddedInputs() {
        return paddedInputs;
    }

    @Override
    public boolean suits(List<Device> instances) {
        return boundary.invoke("Model.suits", () -> model.suits(instances));
    }

    @Override
    public List<MemoryUsage> memoryUsage() {
        try {
            return boundary.invoke("Model.memoryUsage", () -> List.copyOf(model.memoryUsage()), !memoryFailed);
        } catch (BackendException e) {
            memoryFailed = true;
            throw e;
        }
    }

    @Override
    public void close() {
        boundary.close("Model.close", model::close);
    }
}
