package dev.nereid.scheduler.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Copies tensors between the host and memory of devices. Static functions only. */
public final class DeviceCopies {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceCopies.class);

    /** The limit on the wait for a fence: longer work of a device is taken for lost. */
    private static final Duration MAX_WAIT = Duration.ofMinutes(1);

    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 0);

    /** The alignment of tensors on a device that backends read or write in place, in bytes. */
    private static final long ALIGNMENT = 256;

    private DeviceCopies() {}

    /** Returns whether kernels of a device may use memory of the device that begins there, for elements of any type. */
    public static boolean isAligned(MemorySegment memory) {
        return memory.address() % ALIGNMENT == 0;
    }

    /** Returns whether a tensor may be pending, so that its memory must not be freed. */
    private static boolean isPending(Tensor tensor) {
        return tensor.fence().isPresent() && !tensor.fence().get().isDone();
    }

    /** Releases the memory of a tensor, unless the tensor may be pending: that memory stays in use. */
    public static void releaseUnlessPending(Tensor tensor, ReferenceCountedMemory memory) {
        if (isPending(tensor)) {
            LOG.error(
                    "{} bytes in {} stay in use: work of the device has not ended", tensor.byteSize(), tensor.place());
        } else {
            memory.release();
        }
    }

    /**
     * Waits for the fence of a tensor. Most tensors have none.
     *
     * @throws InferenceException if the fence failed, or the work of the device did not end in a minute
     */
    public static void awaitContent(Tensor tensor) {
        Optional<Fence> fence = tensor.fence();
        if (fence.isPresent()) {
            try {
                if (!await(fence.get())) {
                    throw new InferenceException(
                            ErrorCode.INTERNAL,
                            "work of " + tensor.place() + " did not end within " + MAX_WAIT.toSeconds() + " s");
                }
            } catch (BackendException e) {
                throw new InferenceException(e.code(), String.valueOf(e.getMessage()));
            }
        }
    }

    /** Waits for a fence; returns whether the work of the device ended in a minute. */
    static boolean await(Fence fence) {
        return fence.await(MAX_WAIT);
    }

    /**
     * Copies a tensor to memory of the host, pinned while there is some.
     *
     * @param device the memory in which the tensor lies
     * @param memory where the copy is made
     * @return the copy, owned by the caller
     * @throws InferenceException if there is no memory, or the device failed
     */
    public static TensorBuffer toHost(Tensor tensor, DeviceMemory device, TensorMemory memory) {
        return filled(memory.allocate(tensor.byteSize(), PINNED), data -> toHost(tensor, device, data));
    }

    /** Fills memory, and returns it; frees it if that fails. */
    public static TensorBuffer filled(TensorBuffer memory, Consumer<MemorySegment> content) {
        boolean filled = false;
        try {
            content.accept(memory.segment());
            filled = true;
            return memory;
        } finally {
            if (!filled) {
                memory.close();
            }
        }
    }

    /**
     * Copies a tensor to memory of the host.
     *
     * @param device the memory in which the tensor lies
     * @param target memory of the server, of the size of the tensor
     * @throws InferenceException if the device failed
     */
    public static void toHost(Tensor tensor, DeviceMemory device, MemorySegment target) {
        awaitContent(tensor);
        device.copyToHost(tensor.data(), target);
    }

    /**
     * Copies a tensor to memory of a device. It lies on the host, in the same memory or on another device.
     *
     * @param device the memory to which it is copied
     * @param target memory of the server on the device, of the size of the tensor
     * @param memory where a copy on the host is made if one lies between
     * @throws InferenceException if there is no memory, the client's is gone, or a device failed
     * @throws IllegalArgumentException if the tensor lies on a device of which there is no memory
     */
    public static void toDevice(Tensor tensor, DeviceMemory device, MemorySegment target, TensorMemory memory) {
        MemoryPlace place = tensor.place();
        if (place.equals(device.place())) {
            awaitContent(tensor);
            device.copy(tensor.data(), target);
        } else if (place.isHost() && !ClientMemory.isClientMemory(tensor.data())) {
            device.copyFromHost(tensor.data(), target);
        } else if (!isCopiedFromDevice(tensor, device, target, memory)) {
            try (TensorBuffer between = memory.allocate(tensor.byteSize())) {
                if (place.isHost()) {
                    ClientMemory.copy(tensor.data(), between.segment());
                } else {
                    toHost(tensor, source(place, memory), between.segment());
                }
                device.copyFromHost(between.segment(), target);
            }
        }
    }

    /**
     * Copies a tensor to memory of the server, from wherever it lies.
     *
     * @param place where the memory lies
     * @param target the memory, of the size of the tensor
     * @param memory where a copy on the host is made if one lies between
     * @throws InferenceException if there is no memory, the client's is gone, or a device failed
     * @throws IllegalArgumentException if there is no memory of a device in one of the places
     */
    public static void copy(Tensor tensor, MemoryPlace place, MemorySegment target, TensorMemory memory) {
        if (!place.isHost()) {
            toDevice(tensor, source(place, memory), target, memory);
        } else if (!tensor.place().isHost()) {
            toHost(tensor, source(tensor.place(), memory), target);
        } else if (ClientMemory.isClientMemory(tensor.data())) {
            ClientMemory.copy(tensor.data(), target);
        } else {
            target.copyFrom(tensor.data());
        }
    }

    /** Returns the first bytes of a tensor, at most its size, as a tensor of bytes in the same place. */
    public static Tensor bytesOf(Tensor tensor, long byteSize) {
        Tensor bytes =
                Tensor.of(DataType.UINT8, Shape.of(byteSize), tensor.data().asSlice(0, byteSize), tensor.place());
        return tensor.fence().map(bytes::withFence).orElse(bytes);
    }

    private static boolean isCopiedFromDevice(
            Tensor tensor, DeviceMemory device, MemorySegment target, TensorMemory memory) {
        if (tensor.place().isHost()) {
            return false;
        }
        DeviceMemory source = source(tensor.place(), memory);
        awaitContent(tensor);
        return device.copyFrom(source, tensor.data(), target);
    }

    private static DeviceMemory source(MemoryPlace place, TensorMemory memory) {
        return memory.device(place)
                .orElseThrow(() -> new IllegalArgumentException(
                        "tensor: lies in " + place + " (expected: on the host, or on a device with memory)"));
    }
}
