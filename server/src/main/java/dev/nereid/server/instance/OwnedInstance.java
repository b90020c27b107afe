package dev.nereid.server.instance;

import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryAllocator;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.List;
import java.util.function.ObjLongConsumer;

/**
 * Forwards to an instance, and owns its scratch memory. Immutable; as safe for concurrent use as the instance. Its close
 * frees the memory that the instance left allocated.
 */
public final class OwnedInstance implements ModelInstance {
    private final ModelInstance instance;
    private final InstanceMemory memory;

    private OwnedInstance(ModelInstance instance, InstanceMemory memory) {
        this.instance = instance;
        this.memory = memory;
    }

    /**
     * Creates an instance of a model. Blocks.
     *
     * @param plan the instance to be created
     * @param memory the memory of which it may allocate
     * @return the instance, owned by the caller
     * @throws BackendException if the model fails; memory that it allocated is freed then
     */
    public static ModelInstance create(Model model, InstancePlan plan, TensorMemory memory) throws BackendException {
        return create(model, plan, memory, (name, bytes) -> {});
    }

    /**
     * Creates an instance of a model. Blocks.
     *
     * @param plan the instance to be created
     * @param memory the memory of which it may allocate
     * @param leftMemory receives the name of the instance and the bytes that it leaves allocated
     * @return the instance, owned by the caller
     * @throws BackendException if the model fails; memory that it allocated is freed then
     */
    public static ModelInstance create(
            Model model, InstancePlan plan, TensorMemory memory, ObjLongConsumer<String> leftMemory)
            throws BackendException {
        InstanceMemory scratch = new InstanceMemory(plan.name(), memory, leftMemory);
        try {
            return new OwnedInstance(model.newInstance(new Context(plan, scratch)), scratch);
        } catch (BackendException | RuntimeException | Error e) {
            scratch.close();
            throw e;
        }
    }

    @Override
    public void execute(Batch batch) throws BackendException {
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
        try {
            instance.close();
        } finally {
            memory.close();
        }
    }

    /**
     * What an instance knows about itself, and its memory. Immutable.
     *
     * @param plan what was planned of it
     * @param scratch its memory
     */
    private record Context(InstancePlan plan, InstanceMemory scratch) implements InstanceContext {
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
        public MemoryAllocator memory(MemoryPlace place) throws BackendException {
            return scratch.allocator(place);
        }
    }
}
