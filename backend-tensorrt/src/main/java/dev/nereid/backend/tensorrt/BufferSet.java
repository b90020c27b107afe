package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.Bindings.Binding;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.Map;

/**
 * Memory of one execution in flight: for each tensor of the engine, as much as its largest shape takes; on the host for
 * shape tensors. Used by one thread at a time.
 */
final class BufferSet implements AutoCloseable {
    private static final long ALIGNMENT = 256;

    private final int number;
    private final GpuContext gpu;
    private final Arena arena = Arena.ofShared();
    private final Map<String, Long> addresses = new HashMap<>();
    private final Map<String, MemorySegment> onHost = new HashMap<>();
    private final long device;

    /** Allocates the largest size of each tensor in bytes; throws {@link GpuException} if the GPU has less. */
    BufferSet(int number, GpuContext gpu, Bindings bindings, Map<String, Long> sizes) {
        this.number = number;
        this.gpu = gpu;
        long total = 0;
        Map<String, Long> offsets = new HashMap<>();
        for (Binding binding : bindings.inputs()) {
            total += place(binding, sizes, offsets, total);
        }
        for (Binding binding : bindings.outputs()) {
            total += place(binding, sizes, offsets, total);
        }
        long byteSize = Math.max(ALIGNMENT, total);
        long address = gpu.call(driver -> driver.allocate(byteSize));
        device = address;
        offsets.forEach((name, offset) -> addresses.put(name, address + offset));
    }

    /** Takes memory for a tensor. Returns the bytes that it takes on the device. */
    private long place(Binding binding, Map<String, Long> sizes, Map<String, Long> offsets, long at) {
        long size = Math.max(1, sizes.getOrDefault(binding.name(), 0L));
        if (binding.tensor().isShapeTensor()) {
            MemorySegment memory = arena.allocate(size, ALIGNMENT);
            onHost.put(binding.name(), memory);
            addresses.put(binding.name(), memory.address());
            return 0;
        }
        offsets.put(binding.name(), at);
        return (size + ALIGNMENT - 1) & -ALIGNMENT;
    }

    int number() {
        return number;
    }

    /** Returns the address of a tensor's memory. */
    long address(Binding binding) {
        Long address = addresses.get(binding.name());
        if (address == null) {
            throw new IllegalArgumentException("binding: '" + binding.name() + "' (expected: one of the engine)");
        }
        return address;
    }

    MemorySegment host(Binding binding) {
        MemorySegment memory = onHost.get(binding.name());
        if (memory == null) {
            throw new IllegalArgumentException("binding: '" + binding.name() + "' (expected: a shape tensor)");
        }
        return memory;
    }

    @Override
    public void close() {
        gpu.release(driver -> driver.free(device));
        arena.close();
    }
}
