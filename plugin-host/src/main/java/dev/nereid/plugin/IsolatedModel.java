package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.FormingBatch;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.RequestView;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

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
        return new Instance(boundary.invoke("Model.newInstance", () -> model.newInstance(context)), boundary);
    }

    @Override
    public Optional<BackendTraits.Execution> execution() {
        return execution;
    }

    @Override
    public Optional<BatchingStrategy> batching() {
        return boundary.invoke("Model.batching", model::batching).map(strategy -> new Strategy(strategy, boundary));
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

    /**
     * Forwards to a plugin's model instance through the plugin boundary. Immutable; as safe for concurrent use as the
     * instance.
     *
     * <p>Exceptions of {@link #execute} pass unchanged to the scheduler, which fails the batch with them.
     */
    static final class Instance implements ModelInstance {
        private static final String CHECK = "ModelInstance.checkReady";

        private final ModelInstance instance;
        private final PluginBoundary boundary;

        Instance(ModelInstance instance, PluginBoundary boundary) {
            this.instance = instance;
            this.boundary = boundary;
        }

        @Override
        public CompletableFuture<Void> started() {
            return boundary.invokeStage("ModelInstance.started", instance::started);
        }

        @Override
        public void execute(Batch batch) {
            ClassLoader before = boundary.enter();
            try {
                instance.execute(batch);
            } finally {
                PluginBoundary.exit(before);
            }
        }

        @Override
        public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
            ClassLoader before = boundary.enter();
            try {
                instance.sequenceEnded(id, reason);
            } finally {
                PluginBoundary.exit(before);
            }
        }

        @Override
        public CompletionStage<Void> checkReady() {
            CompletableFuture<Void> outcome = new CompletableFuture<>();
            try {
                CompletionStage<Void> stage = boundary.invoke(CHECK, instance::checkReady);
                boundary.invoke(CHECK, () -> stage.whenComplete((_, failure) -> end(outcome, failure)));
            } catch (BackendException e) {
                outcome.completeExceptionally(e);
            }
            return outcome;
        }

        private void end(CompletableFuture<Void> outcome, @Nullable Throwable failure) {
            if (failure == null) {
                outcome.complete(null);
            } else {
                outcome.completeExceptionally(boundary.translate(CHECK, failure));
            }
        }

        @Override
        public void executionOverdue() {
            boundary.call("ModelInstance.executionOverdue", () -> {
                instance.executionOverdue();
                return true;
            });
        }

        @Override
        public void close() {
            boundary.close("ModelInstance.close", instance::close);
        }
    }

    /**
     * Forwards to a plugin's batching strategy through the plugin boundary. Immutable; confined as the strategy.
     *
     * <p>Exceptions of the strategy while a batch is formed pass unchanged to the scheduler, which handles them.
     */
    static final class Strategy implements BatchingStrategy {
        private final BatchingStrategy strategy;
        private final PluginBoundary boundary;

        Strategy(BatchingStrategy strategy, PluginBoundary boundary) {
            this.strategy = strategy;
            this.boundary = boundary;
        }

        @Override
        @SuppressWarnings("NullAway") // A plugin is not compiled with our checks: it may return null.
        public FormingBatch begin() {
            ClassLoader before = boundary.enter();
            try {
                FormingBatch batch = strategy.begin();
                if (batch == null) {
                    throw new BackendException(ErrorCode.INTERNAL, "BatchingStrategy.begin returned null");
                }
                return new Forming(batch);
            } finally {
                PluginBoundary.exit(before);
            }
        }

        @Override
        public void close() {
            boundary.close("BatchingStrategy.close", strategy::close);
        }

        /** Forwards to a forming batch of a plugin through the plugin boundary. */
        private final class Forming implements FormingBatch {
            private final FormingBatch batch;

            Forming(FormingBatch batch) {
                this.batch = batch;
            }

            @Override
            public boolean include(RequestView request) {
                ClassLoader before = boundary.enter();
                try {
                    return batch.include(request);
                } finally {
                    PluginBoundary.exit(before);
                }
            }

            @Override
            public void close() {
                ClassLoader before = boundary.enter();
                try {
                    batch.close();
                } finally {
                    PluginBoundary.exit(before);
                }
            }
        }
    }
}
