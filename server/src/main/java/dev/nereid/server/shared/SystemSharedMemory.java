package dev.nereid.server.shared;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * Registry of POSIX shared memory regions of clients, without CUDA shared memory. Lock-free; safe for use by any
 * thread.
 *
 * <p>A region that a client unregisters stays registered until the requests that used it before have ended, and mapped
 * as long as a request uses it: see {@link MappedRegion}. Its owner may truncate the segment at any time nevertheless;
 * then the memory behind the new end is gone, mapped or not, and every access to it fails. Therefore each lease checks
 * the size of the segment again, and only code that tolerates such failures may access the memory.
 */
public final class SystemSharedMemory implements SharedMemory, AutoCloseable {
    /**
     * The maximum number of regions. It is more than any client needs; each costs a descriptor and a mapping, of which
     * a process has a limited number.
     */
    private static final int MAX_REGIONS = 4_096;

    private static final long MAX_UNSIGNED = -1;

    private final SegmentFiles files;
    private final ConcurrentSkipListMap<String, MappedRegion> regions = new ConcurrentSkipListMap<>();

    /** Creates an empty registry of the system's shared memory. */
    public SystemSharedMemory() {
        this(SegmentFiles.OF_THE_SYSTEM);
    }

    private SystemSharedMemory(SegmentFiles files) {
        this.files = files;
    }

    /** Creates an empty registry whose segments are the files of a directory. */
    static SystemSharedMemory in(Path directory) {
        return new SystemSharedMemory(new SegmentFiles(directory));
    }

    @Override
    public void register(String name, String key, long offset, long byteSize) {
        String region = "cannot register shared memory region '" + Quoted.text(name) + "'";
        if (SegmentFiles.isEmpty(key)) {
            throw invalid(region + " - invalid shm key '" + Quoted.text(key) + "'");
        }
        if (SegmentFiles.isReserved(key)) {
            throw invalid(region + " with key '" + Quoted.text(key) + "' as the key contains the reserved prefix '"
                    + SegmentFiles.RESERVED + "'");
        }
        if (regions.containsKey(name)) {
            throw alreadyExists(name);
        }
        if (regions.size() >= MAX_REGIONS) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    failed(name) + MAX_REGIONS + " regions are registered (expected: less; unregister some)");
        }
        MappedRegion mapped = map(new Region(name, key, offset, byteSize));
        if (regions.putIfAbsent(name, mapped) != null) {
            mapped.release(); // never registered
            throw alreadyExists(name);
        }
    }

    private MappedRegion map(Region region) {
        try {
            FileChannel segment = files.open(region.key());
            boolean mapped = false;
            try {
                check(region, segment.size());
                MappedRegion result = MappedRegion.map(region, segment, this::remove);
                mapped = true;
                return result;
            } finally {
                if (!mapped) {
                    segment.close();
                }
            }
        } catch (IOException e) {
            throw InferenceException.clientError(
                    "Unable to open shared memory region: '" + Quoted.text(region.key()) + "'");
        }
    }

    private void remove(MappedRegion region) {
        regions.remove(region.region().name(), region);
    }

    private static void check(Region region, long segmentSize) {
        long offset = region.offset();
        long byteSize = region.byteSize();
        if (Long.compareUnsigned(offset, segmentSize) > 0 || Long.compareUnsigned(byteSize, segmentSize - offset) > 0) {
            throw invalid(failed(region.name()) + "invalid args");
        }
        if (byteSize == 0) {
            throw invalid(failed(region.name()) + "unable to process address spaceInvalid argument");
        }
    }

    @Override
    public void unregister(String name) {
        MappedRegion found = regions.get(name);
        if (found != null) {
            found.unregister();
        }
    }

    @Override
    public void unregisterAll() {
        regions.values().forEach(MappedRegion::unregister);
    }

    @Override
    public Region region(String name) {
        MappedRegion found = regions.get(name);
        if (found == null) {
            throw notFound("system shared memory region: '" + Quoted.text(name) + "'");
        }
        return found.region();
    }

    @Override
    public List<Region> regions() {
        return regions.values().stream().map(MappedRegion::region).toList();
    }

    @Override
    public Lease lease(String name, long offset, long byteSize) {
        MappedRegion found = regions.get(name);
        MappedRegion.Reference use = found == null ? null : found.acquire();
        if (use == null) {
            throw notFound("shared memory region: '" + Quoted.text(name) + "'");
        }
        boolean leased = false;
        try {
            checkPart(use.region(), offset, byteSize);
            Lease lease = use.lease(offset, byteSize);
            leased = true;
            return lease;
        } finally {
            if (!leased) {
                use.release();
            }
        }
    }

    private static void checkPart(MappedRegion found, long offset, long byteSize) {
        String name = found.region().name();
        long size = found.region().byteSize();
        if (Long.compareUnsigned(offset, size) >= 0) {
            throw invalid("Invalid offset for shared memory region: '" + Quoted.text(name) + "'");
        }
        if (Long.compareUnsigned(byteSize, MAX_UNSIGNED - offset) > 0) {
            throw invalid("Integer overflow detected: byte_size (" + Long.toUnsignedString(byteSize) + ") + offset ("
                    + Long.toUnsignedString(offset) + ") exceeds maximum value ("
                    + Long.toUnsignedString(MAX_UNSIGNED) + ") for region '" + Quoted.text(name) + "'");
        }
        if (Long.compareUnsigned(byteSize, size - offset) > 0) {
            throw invalid("Invalid offset + byte size for shared memory region: '" + Quoted.text(name) + "'");
        }
        long now = found.sizeNow();
        if (offset + byteSize > now) {
            throw invalid("shared memory region '" + Quoted.text(name) + "': its segment ends " + Math.max(0, now)
                    + " bytes behind the start of the region (expected: not before byte " + (offset + byteSize) + ")");
        }
    }

    @Override
    public void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize) {
        throw invalid("failed to register CUDA shared memory region: '" + Quoted.text(name) + "', GPUs not supported");
    }

    @Override
    public void unregisterCuda(String name) {}

    @Override
    public void unregisterAllCuda() {}

    @Override
    public CudaRegion cudaRegion(String name) {
        throw notFound("cuda shared memory region: '" + Quoted.text(name) + "'");
    }

    @Override
    public List<CudaRegion> cudaRegions() {
        return List.of();
    }

    /** Unregisters all regions, as {@link #unregisterAll} does. */
    @Override
    public void close() {
        unregisterAll();
    }

    private static String failed(String name) {
        return "failed to register shared memory region '" + Quoted.text(name) + "': ";
    }

    private static InferenceException alreadyExists(String name) {
        return new InferenceException(
                ErrorCode.ALREADY_EXISTS, "shared memory region '" + Quoted.text(name) + "' already in manager");
    }

    private static InferenceException notFound(String what) {
        return InferenceException.refusal(ErrorCode.NOT_FOUND, RefusalCause.INVALID, "Unable to find " + what);
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
