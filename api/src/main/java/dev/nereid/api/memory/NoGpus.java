package dev.nereid.api.memory;

import dev.nereid.spi.MemoryPlace;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;

/** A machine without GPUs. Immutable. */
final class NoGpus implements GpuAccess {
    @Override
    public List<Integer> numbers() {
        return List.of();
    }

    @Override
    public Optional<DeviceMemory> memory(MemoryPlace place) {
        return Optional.empty();
    }

    @Override
    public Optional<TensorBuffer> allocatePinned(long byteSize) {
        return Optional.empty();
    }

    @Override
    public Opened open(ByteBuffer handle, int gpu, long byteSize) {
        throw new UnsupportedOperationException("GPU " + gpu + ": there is none (expected: one of numbers())");
    }

    @Override
    public Optional<String> failure() {
        return Optional.empty();
    }

    @Override
    public Optional<String> uuid(int gpu) {
        return Optional.empty();
    }

    @Override
    public Optional<DeviceMemory.Use> pinnedUse() {
        return Optional.empty();
    }

    @Override
    public void close() {}
}
