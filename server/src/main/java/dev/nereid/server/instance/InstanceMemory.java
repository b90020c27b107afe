package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryAllocator;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.Map;
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
    private final Map<MemoryPlace, MemoryAllocator> allocators = new ConcurrentHashMap<>();
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
     * Returns the allocator of a place; that of ordinary memory in place of pinned memory if there is none.
     *
     * @throws BackendException {@link ErrorCode#UNSUPPORTED} if the server has no memory there
     */
    MemoryAllocator allocator(MemoryPlace place) {
        if (!place.isHost() && memory.device(place).isEmpty()) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED, "no memory in " + place + " (expected: memory of the host)");
        }
        return allocators.computeIfAbsent(
                place.isHost() && !hasPinned(place) ? MemoryPlace.HOST : place, Allocator::new);
    }

    private boolean hasPinned(MemoryPlace place) {
        if (place.kind() != MemoryPlace.Kind.PINNED) {
            return false;
        }
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
                    .log("instance left memory allocated");
            leftMemory.accept(instance, left);
        }
    }

    private AllocatedMemory allocate(long byteSize, MemoryPlace place) {
        Allocated allocated;
        try {
            allocated = new Allocated(allocateIn(place, byteSize));
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

    /** Scratch memory keeps its place: where pinned memory runs out, it is refused. */
    private TensorBuffer allocateIn(MemoryPlace place, long byteSize) {
        if (place.kind() != MemoryPlace.Kind.PINNED) {
            return memory.allocate(byteSize, place);
        }
        return memory.allocatePinned(byteSize)
                .orElseThrow(() -> new InferenceException(
                        ErrorCode.UNAVAILABLE,
                        "no pinned memory for " + byteSize
                                + " bytes. Use --pinned-memory-pool-byte-size to increase the limit."));
    }

    /** Allocates in one place. Immutable. */
    private final class Allocator implements MemoryAllocator {
        private final MemoryPlace place;

        Allocator(MemoryPlace place) {
            this.place = place;
        }

        @Override
        public MemoryPlace place() {
            return place;
        }

        @Override
        public AllocatedMemory allocate(long byteSize) {
            return InstanceMemory.this.allocate(byteSize, place);
        }
    }

    /** A buffer that may be closed more than once. Safe for use by any thread. */
    private final class Allocated implements AllocatedMemory {
        private final TensorBuffer buffer;
        private final AtomicBoolean freed = new AtomicBoolean();

        Allocated(TensorBuffer buffer) {
            this.buffer = buffer;
        }

        @Override
        public MemorySegment segment() {
            return buffer.segment();
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
