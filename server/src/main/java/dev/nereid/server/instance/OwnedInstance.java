package dev.nereid.server.instance;

import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Forwards to an instance while its GPU works, and owns the instance's scratch memory. It also owns the instance's
 * start and availability. As safe for concurrent use as the instance. Its close frees the memory that the instance left
 * allocated.
 */
public final class OwnedInstance implements ModelInstance {
    private static final Logger LOG = LoggerFactory.getLogger(OwnedInstance.class);

    private final ModelInstance instance;
    private final InstanceMemory memory;
    private final InstanceAvailability availability;

    /** The memory of its GPU; empty for an instance elsewhere. */
    private final Optional<DeviceMemory> device;

    private final String name;

    /** Ends with the start of the instance, and not before, also when it is cancelled. */
    private final CompletableFuture<Void> start;

    /** Receives the start if it goes on when the instance is to be closed. */
    private final Consumer<CompletableFuture<Void>> goesOn;

    private OwnedInstance(
            String name,
            ModelInstance instance,
            CompletableFuture<Void> start,
            InstanceMemory memory,
            InstanceAvailability availability,
            Optional<DeviceMemory> device,
            Consumer<CompletableFuture<Void>> goesOn) {
        this.goesOn = goesOn;
        this.name = name;
        this.instance = instance;
        this.start = start;
        this.memory = memory;
        this.availability = availability;
        this.device = device;
    }

    /**
     * Creates an instance of a model. Blocks.
     *
     * @param memory the memory of which it may allocate
     * @param options limit the memory of GPUs
     * @param owner the model, which reports memory that the instance forgets
     * @param goesOn receives its start if that goes on when the instance is to be closed
     * @return the instance, owned by the caller
     * @throws BackendException if the model fails, or the memory of the GPU in use is beyond the limit; memory that was
     *     allocated is freed then
     */
    public static ModelInstance create(
            Model model,
            InstancePlan plan,
            TensorMemory memory,
            InstanceOptions options,
            ResponseHolder owner,
            Consumer<CompletableFuture<Void>> goesOn) {
        InstanceMemory scratch = new InstanceMemory(plan.name(), memory, owner);
        InstanceAvailability availability = new InstanceAvailability();
        ModelInstance created = null;
        try {
            created = model.newInstance(new Context(plan, scratch, availability));
        } finally {
            if (created == null) {
                scratch.close();
            }
        }
        Optional<DeviceMemory> gpu = plan.device().kind() == Device.Kind.GPU
                ? memory.device(
                        new MemoryPlace(MemoryPlace.Kind.GPU, plan.device().id()))
                : Optional.empty();
        CompletableFuture<Void> start = null;
        try {
            start = created.started().toCompletableFuture();
        } finally {
            if (start == null) {
                try (scratch) {
                    created.close();
                }
            }
        }
        OwnedInstance owned = new OwnedInstance(plan.name(), created, start, scratch, availability, gpu, goesOn);
        try {
            if (gpu.isPresent()) {
                options.gpuLimits().check(plan, gpu.get());
            }
            return owned;
        } catch (RuntimeException e) {
            owned.close();
            throw e;
        }
    }

    /** Returns whether the instance takes batches, as its backend says. */
    InstanceAvailability availability() {
        return availability;
    }

    @Override
    public CompletableFuture<Void> started() {
        return start;
    }

    @Override
    public void execute(Batch batch) {
        if (device.isPresent()) {
            Optional<String> failure = device.get().failure();
            if (failure.isPresent()) {
                throw new BackendException(ErrorCode.UNAVAILABLE, failure.get());
            }
        }
        instance.execute(batch);
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        instance.sequenceEnded(id, reason);
    }

    @Override
    public CompletionStage<Void> checkReady() {
        Optional<String> failure = device.flatMap(DeviceMemory::failure);
        return failure.isPresent()
                ? CompletableFuture.failedStage(new BackendException(ErrorCode.UNAVAILABLE, failure.get()))
                : instance.checkReady();
    }

    @Override
    public void executionOverdue() {
        instance.executionOverdue();
    }

    /** Closes the instance, or has it closed with the end of its start. That is cancelled before. */
    @Override
    public void close() {
        if (!start.isDone() && !start.cancel(true)) {
            LOG.atWarn()
                    .addKeyValue("instance", name)
                    .log(
                            "start cannot be cancelled: the instance is closed when it ends, and its model then"
                                    + " (instance '{}')",
                            name);
            goesOn.accept(start);
            CompletableFuture<Void> _ = start.whenComplete(
                    (_, _) -> Thread.ofPlatform().daemon().name("close/" + name).start(this::closeNow));
        } else {
            closeNow();
        }
    }

    private void closeNow() {
        try {
            instance.close();
        } finally {
            memory.close();
        }
    }

    /**
     * The plan, the scratch memory and the availability of an instance. Safe for use by any thread.
     *
     * @param availability whether it takes batches
     */
    private record Context(InstancePlan plan, InstanceMemory scratch, InstanceAvailability availability)
            implements DeviceInstanceContext {
        @Override
        public String name() {
            return plan.name();
        }

        @Override
        public Device device() {
            return plan.device();
        }

        @Override
        public List<String> profiles() {
            return plan.profiles();
        }

        @Override
        public String hostPolicy() {
            return plan.hostPolicy();
        }

        @Override
        public void unavailable(String reason) {
            availability.unavailable(reason);
        }

        @Override
        public void failing(String reason) {
            availability.failing(reason);
        }

        @Override
        public void available() {
            availability.available();
        }

        @Override
        public AllocatedMemory allocate(MemoryPlace place, long byteSize) {
            return scratch.allocate(place, byteSize);
        }
    }
}
