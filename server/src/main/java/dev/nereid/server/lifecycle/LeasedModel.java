package dev.nereid.server.lifecycle;

import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.files.VersionFiles;
import dev.nereid.server.plugin.BackendLease;
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
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A model that owns a lease on its backend and copies of its files, which end with its close. As safe for use as the model.
 *
 * @param model the model
 * @param lease the lease
 * @param files the private copies of its files
 * @param executor runs tasks of its plugin; lease and copies end after the last of them
 * @param closing begins to watch the close of an instance, by its name, or of the model, by an empty one
 */
record LeasedModel(
        Model model,
        BackendLease lease,
        VersionFiles files,
        ModelExecutor executor,
        Function<String, ModelLoadWatch.Step> closing)
        implements PaddedModel {
    @Override
    public ModelInstance newInstance(InstanceContext context) {
        String name = context.name();
        return new WatchedInstance(model.newInstance(context), () -> closing.apply(name));
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
        try (ModelLoadWatch.Step _ = closing.apply("")) {
            try {
                model.close();
            } finally {
                executor.close(() -> release(files, lease)); // with its last task, if one goes on
            }
        }
    }

    /** Releases what tasks of the executor may use. */
    static void release(VersionFiles files, BackendLease lease) {
        try {
            files.close();
        } finally {
            lease.close();
        }
    }

    /**
     * Forwards to an instance, and reports a close that takes too long. As safe for concurrent use as the instance.
     *
     * @param instance the instance
     * @param closing begins to watch the close
     */
    private record WatchedInstance(ModelInstance instance, Supplier<ModelLoadWatch.Step> closing)
            implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            instance.execute(batch);
        }

        @Override
        public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
            instance.sequenceEnded(id, reason);
        }

        @Override
        public boolean isReady() {
            return instance.isReady();
        }

        @Override
        public void close() {
            try (ModelLoadWatch.Step _ = closing.get()) {
                instance.close();
            }
        }
    }
}
