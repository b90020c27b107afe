package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ObjLongConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scratch memory of one instance, which counts as tensor memory of the server. Safe for use by any thread. Its close
 * frees what the instance left allocated.
 */
final class InstanceMemory implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceMemory.class);

    private final String instance;
    private final TensorMemory memory;
    private final ObjLongConsumer<String> leftMemory;
    private final Set<Allocated> open = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    /**
     * Creates the memory of an instance.
     *
     * @param instance the name of the instance
     * @param memory the tensor memory of the server
     * @param leftMemory receives the name and the bytes that the instance leaves allocated
     */
    InstanceMemory(String instance, TensorMemory memory, ObjLongConsumer<String> leftMemory) {
        this.instance = instance;
        this.memory = memory;
        this.leftMemory = leftMemory;
    }

    /**
     * Allocates memory of one place; ordinary memory in place of pinned memory if there is none. Never blocks.
     *
     * @param byteSize the size needed, 0 or more
     * @return the memory, owned by the caller
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server has no memory there, {@link
     *     ErrorCode#UNAVAILABLE} if none is left
     * @throws IllegalArgumentException if the size is negative
     */
    AllocatedMemory allocate(MemoryPlace place, long byteSize) {
        if (byteSize < 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: >= 0)");
        }
        Allocated allocated;
        try {
            allocated = allocateIn(place, byteSize);
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
        open.add(allocated);
        if (closed) {
            allocated.close();
            throw new BackendException(ErrorCode.UNAVAILABLE, "instance '" + instance + "': closed");
        }
        return allocated;
    }

    private Allocated allocateIn(MemoryPlace place, long byteSize) {
        if (place.kind() == MemoryPlace.Kind.PINNED) {
            return allocatePinned(place, byteSize);
        }
        if (place.isHost()) {
            return new Allocated(memory.allocate(byteSize), MemoryPlace.HOST);
        }
        DeviceMemory device = memory.device(place)
                .orElseThrow(() -> new BackendException(
                        ErrorCode.UNSUPPORTED, "no memory in " + place + " (expected: memory of the host)"));
        return new Allocated(device.allocate(byteSize), place);
    }

    /** Refuses the memory where pinned memory runs out: an instance does not get another place from time to time. */
    private Allocated allocatePinned(MemoryPlace place, long byteSize) {
        Optional<TensorBuffer> pinned = memory.allocatePinned(byteSize);
        if (pinned.isPresent()) {
            return new Allocated(pinned.get(), place);
        }
        if (hasPinned()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "no pinned memory for " + byteSize
                            + " bytes. Use --pinned-memory-pool-byte-size to increase the limit.");
        }
        return new Allocated(memory.allocate(byteSize), MemoryPlace.HOST);
    }

    private boolean hasPinned() {
        Optional<TensorBuffer> probe = memory.allocatePinned(0);
        probe.ifPresent(TensorBuffer::close);
        return probe.isPresent();
    }

    /** Frees what is allocated, and logs its size. Nothing can be allocated any more. */
    @Override
    public void close() {
        closed = true;
        long left = 0;
        for (Allocated allocated : open) {
            left += allocated.segment().byteSize();
            allocated.close();
        }
        if (left > 0) {
            LOG.atWarn()
                    .addKeyValue("instance", instance)
                    .addKeyValue("bytes", left)
                    .log("instance left memory allocated (instance '{}', {} bytes)", instance, left);
            leftMemory.accept(instance, left);
        }
    }

    /** A buffer that may be closed more than once. Safe for use by any thread. */
    private final class Allocated implements AllocatedMemory {
        private final TensorBuffer buffer;
        private final MemoryPlace place;
        private final AtomicBoolean freed = new AtomicBoolean();

        Allocated(TensorBuffer buffer, MemoryPlace place) {
            this.buffer = buffer;
            this.place = place;
        }

        @Override
        public MemorySegment segment() {
            return buffer.segment();
        }

        @Override
        public MemoryPlace place() {
            return place;
        }

        @Override
        public void close() {
            if (freed.compareAndSet(false, true)) {
                open.remove(this);
                buffer.close();
            }
        }
    }
}
