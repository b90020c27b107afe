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
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scratch memory of one instance, which counts as tensor memory of the server. Safe for use by any thread. Its close
 * frees what the instance left allocated.
 */
final class InstanceMemory implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceMemory.class);

    /** The place of one allocation in this many is recorded. */
    private static final int PLACE_INTERVAL = 128;

    private final String instance;
    private final TensorMemory memory;
    private final ObjLongConsumer<String> leftMemory;
    private final Set<Held> open = ConcurrentHashMap.newKeySet();
    private final AtomicLong allocations = new AtomicLong();
    private final AtomicBoolean reported = new AtomicBoolean();
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
        Held held;
        try {
            held = allocateIn(place, byteSize);
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
        open.add(held);
        if (closed) {
            held.free();
            throw new BackendException(ErrorCode.UNAVAILABLE, "instance '" + instance + "': closed");
        }
        return new Allocated(this, held);
    }

    private Held allocateIn(MemoryPlace place, long byteSize) {
        if (place.kind() == MemoryPlace.Kind.PINNED) {
            return allocatePinned(place, byteSize);
        }
        if (place.isHost()) {
            return new Held(memory.allocate(byteSize), MemoryPlace.HOST);
        }
        DeviceMemory device = memory.device(place)
                .orElseThrow(() -> new BackendException(
                        ErrorCode.UNSUPPORTED, "no memory in " + place + " (expected: memory of the host)"));
        return new Held(device.allocate(byteSize), place);
    }

    /** Refuses the memory where pinned memory runs out: an instance does not get another place from time to time. */
    private Held allocatePinned(MemoryPlace place, long byteSize) {
        Optional<TensorBuffer> pinned = memory.allocatePinned(byteSize);
        if (pinned.isPresent()) {
            return new Held(pinned.get(), place);
        }
        if (hasPinned()) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    "no pinned memory for " + byteSize
                            + " bytes. Use --pinned-memory-pool-byte-size to increase the limit.");
        }
        return new Held(memory.allocate(byteSize), MemoryPlace.HOST);
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
        for (Held held : open) {
            left += held.free();
        }
        if (left > 0) {
            LOG.atWarn()
                    .addKeyValue("instance", instance)
                    .addKeyValue("bytes", left)
                    .log("instance left memory allocated (instance '{}', {} bytes)", instance, left);
            leftMemory.accept(instance, left);
        }
    }

    /** Has memory freed that nothing reaches any more, by another thread than the one that finds it. */
    private void unreachable(Held held) {
        if (!held.freed.get()) {
            Thread.ofVirtual().name("forgotten-memory").start(() -> forgotten(held));
        }
    }

    /** Frees memory that nothing reaches any more, and logs the first. */
    private void forgotten(Held held) {
        if (held.freed.compareAndSet(false, true)) {
            try {
                report(held);
            } finally {
                held.release();
            }
        }
    }

    private void report(Held held) {
        long bytes = held.buffer.segment().byteSize();
        if (bytes > 0 && !reported.getAndSet(true)) {
            LOG.atWarn()
                    .addKeyValue("instance", instance)
                    .addKeyValue("bytes", bytes)
                    .setCause(held.where)
                    .log(
                            "instance '{}': {} bytes of its memory were not closed, and the server freed them (expected:"
                                    + " AllocatedMemory.close){}",
                            instance,
                            bytes,
                            held.where == null ? "" : "; they were allocated where the stack shows");
            leftMemory.accept(instance, bytes);
        }
    }

    /** Where memory was allocated. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("the memory was allocated here");
        }
    }

    /**
     * A buffer that may be freed more than once. Safe for use by any thread. Never refers to the object that the plugin has of
     * it, so that it is noticed when the plugin has forgotten that.
     */
    private final class Held {
        private final TensorBuffer buffer;
        private final MemoryPlace place;
        private final @Nullable Throwable where =
                allocations.getAndIncrement() % PLACE_INTERVAL == 0 ? new Place() : null;
        private final AtomicBoolean freed = new AtomicBoolean();

        Held(TensorBuffer buffer, MemoryPlace place) {
            this.buffer = buffer;
            this.place = place;
        }

        /** Frees the buffer; returns its size, 0 if it was freed before. */
        long free() {
            return freed.compareAndSet(false, true) ? release() : 0;
        }

        /** Releases the buffer, once; returns its size. */
        private long release() {
            long bytes = buffer.segment().byteSize();
            try {
                buffer.close();
            } finally {
                open.remove(this);
            }
            return bytes;
        }
    }

    /** A buffer as the plugin sees it. It is freed when neither this object nor its memory segment is reachable. */
    private static final class Allocated implements AllocatedMemory {
        private final Held held;
        private final MemorySegment segment;

        @SuppressWarnings("restricted") // of the same memory and size
        Allocated(InstanceMemory memory, Held held) {
            this.held = held;
            segment = held.buffer.segment().reinterpret(Arena.ofAuto(), _ -> memory.unreachable(held));
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public MemoryPlace place() {
            return held.place;
        }

        @Override
        public void close() {
            held.free();
        }
    }
}
