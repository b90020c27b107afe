package dev.nereid.server.instance;

import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.InstanceAvailability;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instance of a backend's model with what belongs to it: its plan, its start, and its scratch memory, which its close
 * frees. A scheduler runs it, unless it is passive. Safe for use by any thread.
 */
public final class BackendInstance {
    private static final Logger LOG = LoggerFactory.getLogger(BackendInstance.class);

    private final InstancePlan plan;
    private final ModelInstance backend;
    private final InstanceMemory memory;
    private final Instance scheduled;

    /** Ends with the start of the instance, and not before, also when it is cancelled. */
    private final CompletableFuture<Void> start;

    private final Owner owner;
    private final AtomicBoolean closed = new AtomicBoolean();

    /** The model of an instance, which is loaded by a package that depends on this one. Safe for use by any thread. */
    public interface Owner {
        /** Returns the receiver of reports about memory that the instance forgets. */
        ResponseHolder responses();

        /** Receives the start of an instance if it goes on when the instance is to be closed. */
        void startGoesOn(CompletableFuture<Void> start);

        /**
         * Closes an instance, or what is left of it. Called once for each.
         *
         * @param name the name of the instance
         * @param close closes the backend's object; may throw what that throws
         */
        void closeInstance(String name, Runnable close);
    }

    private BackendInstance(
            InstancePlan plan,
            ModelInstance backend,
            CompletableFuture<Void> start,
            InstanceMemory memory,
            InstanceAvailability availability,
            Optional<DeviceMemory> gpu,
            HostPolicies policies,
            Owner owner) {
        this.plan = plan;
        this.backend = backend;
        this.start = start;
        this.memory = memory;
        this.owner = owner;
        this.scheduled = new Instance(
                plan.name(),
                plan.device(),
                gpu,
                backend,
                plan.rateProfile(),
                policies.placement(plan.hostPolicy()),
                availability,
                this::close);
    }

    /**
     * Creates an instance of a model. Blocks.
     *
     * @param memory the memory of which it may allocate
     * @param options limit the memory of GPUs, and place its thread
     * @param owner has counted the instance
     * @return the instance, owned by the caller
     * @throws BackendException if the model fails, or the memory of the GPU in use is beyond the limit; memory that was
     *     allocated is freed then
     */
    public static BackendInstance create(
            Model model, InstancePlan plan, TensorMemory memory, InstanceOptions options, Owner owner) {
        InstanceMemory scratch = new InstanceMemory(plan.name(), memory, owner.responses());
        InstanceAvailability availability = new InstanceAvailability();
        ModelInstance created = null;
        CompletableFuture<Void> start = null;
        try {
            created = model.newInstance(new Context(plan, scratch, availability));
            start = created.started().toCompletableFuture();
        } finally {
            if (start == null) {
                ModelInstance failed = created;
                owner.closeInstance(plan.name(), () -> close(failed, scratch));
            }
        }
        Optional<DeviceMemory> gpu = plan.device().kind() == Device.Kind.GPU
                ? memory.device(
                        new MemoryPlace(MemoryPlace.Kind.GPU, plan.device().id()))
                : Optional.empty();
        BackendInstance instance =
                new BackendInstance(plan, created, start, scratch, availability, gpu, options.hostPolicies(), owner);
        try {
            if (gpu.isPresent()) {
                options.gpuLimits().check(plan, gpu.get());
            }
            return instance;
        } catch (RuntimeException e) {
            instance.close();
            throw e;
        }
    }

    public InstancePlan plan() {
        return plan;
    }

    /** Returns whether it never executes. */
    public boolean isPassive() {
        return plan.passive();
    }

    /** Returns the instance as a scheduler runs it: the same each time. Its close closes this. */
    public Instance scheduled() {
        return scheduled;
    }

    /** Returns what ends with the start of the instance. */
    public CompletableFuture<Void> started() {
        return start;
    }

    /**
     * Closes the instance, or has it closed with the end of its start. That is cancelled before. A second close does
     * nothing.
     */
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        if (!start.isDone() && !start.cancel(true)) {
            LOG.atWarn()
                    .addKeyValue("instance", plan.name())
                    .log(
                            "start cannot be cancelled: the instance is closed when it ends, and its model then"
                                    + " (instance '{}')",
                            plan.name());
            owner.startGoesOn(start);
            CompletableFuture<Void> _ = start.whenComplete((_, _) ->
                    Thread.ofPlatform().daemon().name("close/" + plan.name()).start(this::closeNow));
        } else {
            closeNow();
        }
    }

    private void closeNow() {
        owner.closeInstance(plan.name(), () -> close(backend, memory));
    }

    private static void close(@Nullable ModelInstance backend, InstanceMemory memory) {
        try (memory) {
            if (backend != null) {
                backend.close();
            }
        }
    }

    /** The plan, the scratch memory and the availability of an instance. Safe for use by any thread. */
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
