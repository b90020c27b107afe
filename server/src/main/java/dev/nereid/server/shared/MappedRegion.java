package dev.nereid.server.shared;

import dev.nereid.api.SharedMemory.Region;
import dev.nereid.api.TensorBuffer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A region and its mapping, with a count of its users: the registry and each lease. The last one to go unmaps it.
 * Lock-free; safe for use by any thread.
 *
 * <p>The count only rises while it is above zero, so it reaches zero once.
 */
final class MappedRegion {
    private static final Logger LOG = LoggerFactory.getLogger(MappedRegion.class);

    private final Region region;
    private final FileChannel segment;
    private final Arena arena;
    private final MemorySegment memory;
    private final AtomicInteger users = new AtomicInteger(1);

    private MappedRegion(Region region, FileChannel segment, Arena arena, MemorySegment memory) {
        this.region = region;
        this.segment = segment;
        this.arena = arena;
        this.memory = memory;
    }

    /** Maps part of a segment, whose channel is the region's unless this throws. */
    static MappedRegion map(Region region, FileChannel segment) throws IOException {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment memory =
                    segment.map(FileChannel.MapMode.READ_WRITE, region.offset(), region.byteSize(), arena);
            return new MappedRegion(region, segment, arena, memory);
        } catch (IOException | RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    Region region() {
        return region;
    }

    /** Returns how large the segment is now, counted from the start of the region; less than 0 if it ends before. */
    long sizeNow() {
        try {
            return segment.size() - region.offset();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Adds a user, unless the last one has gone. */
    boolean retain() {
        return users.getAndUpdate(count -> count == 0 ? 0 : count + 1) > 0;
    }

    /** Takes a user away; the last one unmaps the region. */
    void release() {
        if (users.decrementAndGet() > 0) {
            return;
        }
        try (segment) {
            arena.close();
        } catch (IOException | RuntimeException e) {
            LOG.atWarn().addKeyValue("region", region.name()).setCause(e).log("segment could not be closed");
        }
    }

    /** Hands out a part; takes over a use of the region. */
    TensorBuffer lease(long offset, long byteSize) {
        return new Lease(this, memory.asSlice(offset, byteSize));
    }

    /** A part of a region in use. */
    private static final class Lease implements TensorBuffer {
        private final MappedRegion region;
        private final MemorySegment part;
        private final AtomicBoolean closed = new AtomicBoolean();

        Lease(MappedRegion region, MemorySegment part) {
            this.region = region;
            this.part = part;
        }

        @Override
        public MemorySegment segment() {
            return part;
        }

        @Override
        public void close() {
            if (!closed.compareAndSet(false, true)) {
                throw new IllegalStateException("lease: given back twice (expected: once)");
            }
            region.release();
        }
    }
}
