package dev.nereid.server.lifecycle;

import dev.nereid.plugin.BackendLease;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A model that owns a lease on its backend and copies of its files. Its close ends both. As safe for use as the model.
 *
 * <p>It is closed after the last of its instances: of an instance with a start that cannot be cancelled, the close follows
 * when the load that failed has closed the model already.
 */
final class LeasedModel implements PaddedModel {
    /**
     * The resources of a load until its model is closed. Safe for use by any thread.
     *
     * @param files the private copies of the model's files
     * @param executor runs tasks of the plugin; the rest is released after the last of them
     * @param responses the responses of other models that the plugin holds
     */
    record Resources(BackendLease lease, VersionFiles files, ModelExecutor executor, ResponseHolder responses) {
        /** Releases them after the close of the model, with the last task of the plugin if one goes on. */
        void close() {
            endListeners();
            executor.close(this::release);
        }

        private void endListeners() {
            List<Throwable> ended = executor.logLevels().close();
            if (!ended.isEmpty()) {
                responses.report(
                        ended.size()
                                + (ended.size() == 1 ? " action of onLogLevel was" : " actions of onLogLevel were"),
                        "CancelHook.close, at the latest in Model.close",
                        ended.getFirst());
            }
        }

        /** Releases them after a load that failed. */
        void closeFailed() {
            executor.closeFailed(this::release);
        }

        private void release() {
            try {
                responses.close();
            } finally {
                try {
                    files.close();
                } finally {
                    lease.close();
                }
            }
        }
    }

    private final Model model;
    private final Resources resources;
    private final Function<String, ModelLoadWatch.Step> closing;

    private final AtomicInteger uses = new AtomicInteger(1);

    /**
     * Creates the owner of a model.
     *
     * @param closing begins to watch the close of an instance, by its name, or of the model, by an empty one
     */
    LeasedModel(Model model, Resources resources, Function<String, ModelLoadWatch.Step> closing) {
        this.model = model;
        this.resources = resources;
        this.closing = closing;
    }

    Resources resources() {
        return resources;
    }

    @Override
    public ModelInstance newInstance(InstanceContext context) {
        String name = context.name();
        ModelInstance created = model.newInstance(context);
        uses.incrementAndGet();
        return new WatchedInstance(created, () -> closing.apply(name), this::release, new AtomicBoolean());
    }

    @Override
    public Optional<BackendTraits.Execution> execution() {
        return model.execution();
    }

    @Override
    public Optional<BatchingStrategy> batching() {
        return model.batching();
    }

    @Override
    public Map<String, Shape> paddedInputs() {
        return model instanceof PaddedModel padded ? padded.paddedInputs() : Map.of();
    }

    @Override
    public boolean suits(List<Device> instances) {
        return model.suits(instances);
    }

    @Override
    public List<MemoryUsage> memoryUsage() {
        return model.memoryUsage();
    }

    @Override
    public void close() {
        release();
    }

    /** Ends the use by the model, or by an instance. The last one closes the model. */
    private void release() {
        if (uses.decrementAndGet() > 0) {
            return;
        }
        try (ModelLoadWatch.Step _ = closing.apply("")) {
            try {
                model.close();
            } finally {
                resources.close();
            }
        }
    }

    /**
     * Forwards to an instance, and reports a close that takes too long. As safe for concurrent use as the instance.
     *
     * @param closing begins to watch the close
     * @param closed called after the close
     * @param isClosed whether the close has begun; a second one does nothing
     */
    private record WatchedInstance(
            ModelInstance instance, Supplier<ModelLoadWatch.Step> closing, Runnable closed, AtomicBoolean isClosed)
            implements ModelInstance {
        @Override
        public CompletionStage<Void> started() {
            return instance.started();
        }

        @Override
        public void execute(Batch batch) {
            instance.execute(batch);
        }

        @Override
        public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
            instance.sequenceEnded(id, reason);
        }

        @Override
        public CompletionStage<Void> checkReady() {
            return instance.checkReady();
        }

        @Override
        public void executionOverdue() {
            instance.executionOverdue();
        }

        @Override
        public void close() {
            if (!isClosed.compareAndSet(false, true)) {
                return;
            }
            try (ModelLoadWatch.Step _ = closing.get()) {
                instance.close();
            } finally {
                closed.run();
            }
        }
    }
}
