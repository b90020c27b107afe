package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryAllocator;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * An {@link InstanceContext} for tests of backends. Immutable but for its memory.
 *
 * @param name the name of the instance
 * @param device the device of the instance
 * @param profiles the optimization profiles of the instance
 * @param memory allocates scratch memory, on the host and on the device; empty for a server that has none
 */
public record FakeInstanceContext(
        String name, Device device, List<String> profiles, Optional<LeakCheckingMemory> memory)
        implements InstanceContext {
    /** Copies the components. */
    public FakeInstanceContext {
        profiles = List.copyOf(profiles);
    }

    /**
     * Creates the context of an instance on the CPU.
     *
     * @param name the name of the instance
     */
    public FakeInstanceContext(String name) {
        this(name, Device.CPU);
    }

    /**
     * Creates the context of an instance on a device.
     *
     * @param name the name of the instance
     * @param device the device of the instance
     */
    public FakeInstanceContext(String name, Device device) {
        this(name, device, List.of(), Optional.empty());
    }

    /**
     * Returns the same context with scratch memory.
     *
     * @param scratch allocates the memory
     * @return the changed context
     */
    public FakeInstanceContext with(LeakCheckingMemory scratch) {
        return new FakeInstanceContext(name, device, profiles, Optional.of(scratch));
    }

    @Override
    public MemoryAllocator memory(MemoryPlace place) throws BackendException {
        boolean isOnDevice = device.kind() == Device.Kind.GPU
                && place.kind() == MemoryPlace.Kind.GPU
                && place.deviceId() == device.id();
        boolean exists = memory.isPresent()
                && (place.isHost() || isOnDevice || memory.get().device(place).isPresent());
        if (!exists) {
            return InstanceContext.super.memory(place);
        }
        return new FakeAllocator(place.isHost() ? MemoryPlace.HOST : place, memory.get());
    }

    /**
     * A {@link MemoryAllocator} over memory that detects leaks. Memory of a device that it does not have is memory of the
     * host, labeled. Safe for use by any thread.
     *
     * @param place where the memory is said to lie
     * @param memory allocates it
     */
    private record FakeAllocator(MemoryPlace place, LeakCheckingMemory memory) implements MemoryAllocator {
        @Override
        public AllocatedMemory allocate(long byteSize) throws BackendException {
            if (byteSize < 0) {
                throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
            }
            try {
                boolean onDevice = memory.device(place).isPresent();
                return new Allocated(
                        onDevice ? memory.allocate(byteSize, place) : memory.allocate(byteSize), new AtomicBoolean());
            } catch (InferenceException e) {
                throw new BackendException(e.code(), e.publicMessage(), e);
            }
        }

        /** Memory that is freed once, however often it is closed. */
        private record Allocated(TensorBuffer buffer, AtomicBoolean closed) implements AllocatedMemory {
            @Override
            public MemorySegment segment() {
                return buffer.segment();
            }

            @Override
            public void close() {
                if (closed.compareAndSet(false, true)) {
                    buffer.close();
                }
            }
        }
    }
}
