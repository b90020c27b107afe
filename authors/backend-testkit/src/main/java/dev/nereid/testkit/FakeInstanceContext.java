package dev.nereid.testkit;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A {@link DeviceInstanceContext} for tests of backends. Safe for use by any thread.
 *
 * @param memory the memory of which the instance allocates, which the test checks for leaks: unlike the server, this
 *     frees nothing that the instance leaves
 * @param unavailability the last reason that the instance gave for taking no work, or for failing it; empty if it serves
 */
public record FakeInstanceContext(
        String name,
        Device device,
        List<String> profiles,
        TensorMemory memory,
        AtomicReference<Optional<String>> unavailability)
        implements DeviceInstanceContext {
    public FakeInstanceContext {
        profiles = List.copyOf(profiles);
        requireNonNull(memory, "memory");
        requireNonNull(unavailability, "unavailability");
    }

    /**
     * Creates the context of an instance that takes work.
     *
     * @param memory the memory of which the instance allocates
     */
    public FakeInstanceContext(String name, Device device, List<String> profiles, TensorMemory memory) {
        this(name, device, profiles, memory, new AtomicReference<>(Optional.empty()));
    }

    /** Creates the context of an instance with unchecked memory. */
    public FakeInstanceContext(String name, Device device, List<String> profiles) {
        this(name, device, profiles, new LeakCheckingMemory());
    }

    @Override
    public void unavailable(String reason) {
        unavailability.set(Optional.of(reason));
    }

    @Override
    public void failing(String reason) {
        unavailability.set(Optional.of(reason));
    }

    @Override
    public void available() {
        unavailability.set(Optional.empty());
    }

    @Override
    public AllocatedMemory allocate(MemoryPlace place, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        if (!place.isHost() && memory.device(place).isEmpty()) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED, "no memory in " + place + " (expected: memory of the host)");
        }
        MemoryPlace used = place.isHost() ? MemoryPlace.HOST : place;
        try {
            return new Allocated(memory.allocate(byteSize, used), used, new AtomicBoolean());
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage());
        }
    }

    /** A buffer that may be closed more than once. */
    private record Allocated(TensorBuffer buffer, MemoryPlace place, AtomicBoolean closed) implements AllocatedMemory {
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

    /** Creates the context of an instance on the CPU. */
    public FakeInstanceContext(String name) {
        this(name, Device.CPU, List.of());
    }
}
