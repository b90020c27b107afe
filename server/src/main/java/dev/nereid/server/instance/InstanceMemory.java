package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.handle.ForgottenCount;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * Scratch memory of one instance, which counts as tensor memory of the server. Safe for use by any thread. Its close
 * frees memory that the instance left allocated.
 */
final class InstanceMemory implements AutoCloseable {
    /** The place of one allocation in this many is recorded, until memory is forgotten; then every place is. */
    private static final int PLACE_INTERVAL = 128;

    private final String instance;
    private final TensorMemory memory;
    private final ResponseHolder owner;
    private final Set<Held> open = ConcurrentHashMap.newKeySet();
    private final AtomicLong allocations = new AtomicLong();
    private final ForgottenCount forgotten = new ForgottenCount();
    private final LongAdder forgottenBytes = new LongAdder();
    private volatile boolean closed;

    /** Creates the memory of an instance. Its owner reports memory that the instance forgets. */
    InstanceMemory(String instance, TensorMemory memory, ResponseHolder owner) {
        this.instance = instance;
        this.memory = memory;
        this.owner = owner;
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

    /**
     * Frees and reports all allocated memory, and reports how much was forgotten before. Called once. Nothing can be
     * allocated any more.
     */
    @Override
    public void close() {
        closed = true;
        List<Held> left = open.stream()
                .filter(Held::free)
                .filter(held -> held.bytes() > 0)
                .toList();
        if (!left.isEmpty()) {
            report(
                    left.size() + (left.size() == 1 ? " allocation" : " allocations"),
                    left.stream().mapToLong(Held::bytes).sum(),
                    left.size() == 1 ? "was" : "were",
                    left.stream()
                            .map(held -> held.where)
                            .filter(Objects::nonNull)
                            .findFirst()
                            .orElse(null));
        }
        long number = forgotten.total();
        if (number > 0) {
            report(number + " allocations", forgottenBytes.sum(), "in all were", null);
        }
    }

    private void report(String what, long bytes, String verb, @Nullable Throwable where) {
        owner.report(
                what + " of " + bytes + " bytes of instance '" + instance + "' " + verb,
                "AllocatedMemory.close, at the latest in ModelInstance.close",
                where);
    }

    /** Frees unreachable memory on another thread than the one that finds it. */
    private void unreachable(Held held) {
        if (!held.freed.get()) {
            Thread.ofVirtual().name("forgotten-memory").start(() -> forgotten(held));
        }
    }

    /** Reports memory that nothing reaches any more, and frees it. */
    private void forgotten(Held held) {
        if (held.freed.compareAndSet(false, true)) {
            try {
                report(held);
            } finally {
                held.release();
            }
        }
    }

    /** Reports the first memory that was forgotten, and the first with a place. */
    private void report(Held held) {
        if (held.bytes() == 0) {
            return;
        }
        forgottenBytes.add(held.bytes());
        if (forgotten.add(held.where) > 0) {
            report("an allocation", held.bytes(), "was", held.where);
        }
    }

    private boolean isPlaceRecorded() {
        boolean isSample = allocations.getAndIncrement() % PLACE_INTERVAL == 0;
        return isSample || forgotten.needsPlace();
    }

    /** The place where memory was allocated. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("it was allocated");
        }
    }

    /**
     * A buffer that may be freed more than once. Safe for use by any thread. Never refers to the object that the plugin has of
     * it, so that it is noticed when the plugin has forgotten that.
     */
    private final class Held {
        private final TensorBuffer buffer;
        private final MemoryPlace place;
        private final @Nullable Throwable where = isPlaceRecorded() ? new Place() : null;
        private final AtomicBoolean freed = new AtomicBoolean();

        Held(TensorBuffer buffer, MemoryPlace place) {
            this.buffer = buffer;
            this.place = place;
        }

        /** Returns its size, also when it is freed. */
        long bytes() {
            return buffer.segment().byteSize();
        }

        /** Frees the buffer; returns whether this is the first call. */
        boolean free() {
            boolean isFirst = freed.compareAndSet(false, true);
            if (isFirst) {
                release();
            }
            return isFirst;
        }

        /** Releases the buffer, once. */
        private void release() {
            try {
                buffer.close();
            } finally {
                open.remove(this);
            }
        }
    }

    /** A buffer as the plugin sees it. It is freed when this object and its memory segment are unreachable. */
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
