package dev.nereid.server.shared;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.SharedMemory.CudaRegion;
import dev.nereid.api.memory.SharedMemory.Region;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory of a shared region, with reference counts for memory and registration. Lock-free; safe for use by any
 * thread.
 *
 * <p>The registry and each lease hold a reference; the release of the last one unmaps the region. The registration is
 * held by the registry and by each lease acquired before the client unregistered the region, until the last response of
 * the lease's request is about to be written; the release of the last hold removes the region from the registry. So a
 * request that was accepted before the client unregistered the region keeps it registered until its terminal response;
 * a later one may use it, and keeps it mapped, but not registered. Each count only rises while it is above zero, so it
 * reaches zero once.
 */
final class SharedRegion {
    private static final Logger LOG = LoggerFactory.getLogger(SharedRegion.class);

    private final RegionMemory memory;
    private final Consumer<SharedRegion> registry;
    private final AtomicInteger references = new AtomicInteger(1);
    private final AtomicInteger registrationHolds = new AtomicInteger(1);
    private final AtomicBoolean unregistered = new AtomicBoolean();

    /**
     * Creates a region that is registered.
     *
     * @param memory its memory, owned by the region
     * @param registry removes the region, so that its name is free; called once, on any thread
     */
    SharedRegion(RegionMemory memory, Consumer<SharedRegion> registry) {
        this.memory = memory;
        this.registry = registry;
    }

    RegionMemory memory() {
        return memory;
    }

    /**
     * Unregisters the region: now, or after the terminal responses of the leases acquired before. Later calls do
     * nothing.
     */
    void unregister() {
        if (unregistered.compareAndSet(false, true)) {
            releaseRegistration();
        }
    }

    /** Adds a holder, unless the region was unregistered. */
    private boolean holdRegistration() {
        return !unregistered.get() && increment(registrationHolds);
    }

    private void releaseRegistration() {
        if (registrationHolds.decrementAndGet() == 0) {
            registry.accept(this);
            release();
        }
    }

    private static boolean increment(AtomicInteger count) {
        return count.getAndUpdate(value -> value == 0 ? 0 : value + 1) > 0;
    }

    /** Takes a user away; the last one unmaps the region. */
    void release() {
        if (references.decrementAndGet() > 0) {
            return;
        }
        try {
            memory.close();
        } catch (IOException | RuntimeException e) {
            LOG.atWarn()
                    .addKeyValue("region", memory.name())
                    .setCause(e)
                    .log("shared memory could not be closed (region '{}')", memory.name());
        }
    }

    /** Begins a use, to be ended by {@link Reference#release}; {@code null} if the region is no longer mapped. */
    @Nullable
    Reference acquire() {
        return increment(references) ? new Reference(this, holdRegistration()) : null;
    }

    /** A request's reference to a region. Lock-free; safe for use by any thread. */
    static final class Reference {
        private final SharedRegion region;
        private final AtomicBoolean holdsRegistration;

        private Reference(SharedRegion region, boolean holds) {
            this.region = region;
            this.holdsRegistration = new AtomicBoolean(holds);
        }

        SharedRegion region() {
            return region;
        }

        /** Hands out a part, which ends the use when it is closed. */
        SharedMemory.Lease lease(long offset, long byteSize) {
            return new Part(this, region.memory.segment().asSlice(offset, byteSize));
        }

        /** Releases the hold on the registration. Later calls do nothing. */
        void releaseRegistration() {
            if (holdsRegistration.compareAndSet(true, false)) {
                region.releaseRegistration();
            }
        }

        /** Releases the reference; to be called once. */
        void release() {
            releaseRegistration();
            region.release();
        }
    }

    /** A leased part of a region. */
    private static final class Part implements SharedMemory.Lease {
        private final Reference reference;
        private final MemorySegment part;
        private final AtomicBoolean closed = new AtomicBoolean();

        Part(Reference use, MemorySegment part) {
            this.reference = use;
            this.part = part;
        }

        @Override
        public MemorySegment segment() {
            return part;
        }

        @Override
        public MemoryPlace place() {
            return reference.region.memory.place();
        }

        @Override
        public void releaseRegistration() {
            reference.releaseRegistration();
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                throw new IllegalStateException("lease: closed twice (expected: once)");
            }
            reference.release();
        }
    }

    /** The memory of a registered region. Owned by the region. */
    sealed interface RegionMemory extends AutoCloseable {
        String name();

        MemorySegment segment();

        /** Returns where it lies. */
        MemoryPlace place();

        /** Returns its present size, which its owner may have changed; less than 0 if it ends before its start. */
        long sizeNow();

        @Override
        void close() throws IOException;

        /**
         * A mapped part of a POSIX shared memory segment.
         *
         * @param region the part
         */
        record Mapped(Region region, FileChannel file, Arena arena, MemorySegment segment) implements RegionMemory {
            /** Maps part of a segment, and takes over its channel unless this throws. */
            static Mapped map(Region region, FileChannel file) throws IOException {
                Arena arena = Arena.ofShared();
                MemorySegment memory = null;
                try {
                    memory = file.map(FileChannel.MapMode.READ_WRITE, region.offset(), region.byteSize(), arena);
                    return new Mapped(region, file, arena, memory);
                } finally {
                    if (memory == null) {
                        arena.close();
                    }
                }
            }

            @Override
            public String name() {
                return region.name();
            }

            @Override
            public MemoryPlace place() {
                return MemoryPlace.HOST;
            }

            @Override
            public long sizeNow() {
                try {
                    return file.size() - region.offset();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }

            @Override
            public void close() throws IOException {
                try (file) {
                    arena.close();
                }
            }
        }

        /** Memory of a GPU. */
        record OnGpu(CudaRegion region, GpuAccess.Opened opened) implements RegionMemory {
            @Override
            public String name() {
                return region.name();
            }

            @Override
            public MemorySegment segment() {
                return opened.segment();
            }

            @Override
            public MemoryPlace place() {
                return new MemoryPlace(MemoryPlace.Kind.GPU, (int) region.deviceId());
            }

            @Override
            public long sizeNow() {
                return region.byteSize();
            }

            @Override
            public void close() {
                opened.close();
            }
        }
    }
}
