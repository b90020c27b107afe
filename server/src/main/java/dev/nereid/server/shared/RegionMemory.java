package dev.nereid.server.shared;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory.CudaRegion;
import dev.nereid.api.memory.SharedMemory.Region;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;

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
