package dev.nereid.server.shared;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.server.shared.SharedRegion.RegionMemory;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Registers the POSIX shared memory and the memory of GPUs that clients share. A name belongs to one region, of either
 * kind. Lock-free; safe for use by any thread.
 *
 * <p>A region that a client unregisters stays registered until the requests that used it before have ended, and mapped
 * as long as a request uses it: see {@link SharedRegion}. Its owner may truncate the segment at any time nevertheless;
 * then the memory behind the new end is gone, mapped or not, and every access to it fails. Therefore each lease checks
 * the size of the segment again, and only code that tolerates such failures may access the memory.
 */
public final class ClientSharedMemory implements SharedMemory, AutoCloseable {
    /**
     * The maximum number of regions. It is more than any client needs; each costs a descriptor and a mapping, of which
     * a process has a limited number.
     */
    private static final int MAX_REGIONS = 4_096;

    private static final long MAX_UNSIGNED = -1;

    /** The size of {@code cudaIpcMemHandle_t}, in bytes. */
    private static final int HANDLE_SIZE = 64;

    private final SegmentFiles files;
    private final GpuAccess gpus;
    private final ConcurrentSkipListMap<String, SharedRegion> regions = new ConcurrentSkipListMap<>();

    /**
     * Creates an empty registry of the system's shared memory.
     *
     * @param gpus open memory of GPUs
     */
    public ClientSharedMemory(GpuAccess gpus) {
        this(SegmentFiles.OF_THE_SYSTEM, gpus);
    }

    private ClientSharedMemory(SegmentFiles files, GpuAccess gpus) {
        this.files = files;
        this.gpus = gpus;
    }

    /** Creates an empty registry for segments that are the files of a directory. */
    static ClientSharedMemory in(Path directory, GpuAccess gpus) {
        return new ClientSharedMemory(new SegmentFiles(directory), gpus);
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
        checkFree(name);
        add(map(new Region(name, key, offset, byteSize)));
    }

    private void checkFree(String name) {
        if (regions.containsKey(name)) {
            throw alreadyExists(name);
        }
        if (regions.size() >= MAX_REGIONS) {
            throw new InferenceException(
                    ErrorCode.UNAVAILABLE,
                    failed(name) + MAX_REGIONS + " regions are registered (expected: less; unregister some)");
        }
    }

    private void add(RegionMemory memory) {
        SharedRegion region = new SharedRegion(memory, this::remove);
        if (regions.putIfAbsent(memory.name(), region) != null) {
            region.release(); // never registered
            throw alreadyExists(memory.name());
        }
    }

    private RegionMemory map(Region region) {
        try {
            FileChannel segment = files.open(region.key());
            boolean mapped = false;
            try {
                check(region, segment.size());
                RegionMemory result = RegionMemory.Mapped.map(region, segment);
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

    private void remove(SharedRegion region) {
        regions.remove(region.memory().name(), region);
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
        SharedRegion found = regions.get(name);
        if (found != null && found.memory() instanceof RegionMemory.Mapped) {
            found.unregister();
        }
    }

    @Override
    public void unregisterAll() {
        unregisterAll(RegionMemory.Mapped.class);
    }

    private void unregisterAll(Class<? extends RegionMemory> kind) {
        for (SharedRegion region : regions.values()) {
            if (kind.isInstance(region.memory())) {
                region.unregister();
            }
        }
    }

    @Override
    public Region region(String name) {
        SharedRegion found = regions.get(name);
        if (found != null && found.memory() instanceof RegionMemory.Mapped mapped) {
            return mapped.region();
        }
        throw notFound("system shared memory region: '" + Quoted.text(name) + "'");
    }

    @Override
    public List<Region> regions() {
        return memories(RegionMemory.Mapped.class)
                .map(RegionMemory.Mapped::region)
                .toList();
    }

    private <T extends RegionMemory> Stream<T> memories(Class<T> kind) {
        return regions.values().stream()
                .map(SharedRegion::memory)
                .filter(kind::isInstance)
                .map(kind::cast);
    }

    @Override
    public Lease lease(String name, long offset, long byteSize) {
        SharedRegion found = regions.get(name);
        SharedRegion.Reference use = found == null ? null : found.acquire();
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

    private static void checkPart(SharedRegion found, long offset, long byteSize) {
        String name = found.memory().name();
        long size = found.memory().segment().byteSize();
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
        long now = found.memory().sizeNow();
        if (offset + byteSize > now) {
            throw invalid("shared memory region '" + Quoted.text(name) + "': its segment ends " + Math.max(0, now)
                    + " bytes behind the start of the region (expected: not before byte " + (offset + byteSize) + ")");
        }
    }

    @Override
    public void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize) {
        String region = "failed to register CUDA shared memory region: '" + Quoted.text(name) + "', ";
        if (gpus.numbers().isEmpty()) {
            throw invalid(region + "GPUs not supported");
        }
        if (handle.remaining() != HANDLE_SIZE) {
            throw invalid("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
        }
        checkFree(name);
        if (deviceId < 0 || deviceId > Integer.MAX_VALUE || !gpus.numbers().contains((int) deviceId)) {
            throw invalid(region + "device_id " + Long.toUnsignedString(deviceId) + " (expected: one of "
                    + gpus.numbers() + ", the GPUs of the server)");
        }
        if (byteSize <= 0) {
            throw invalid(region + "byte_size " + Long.toUnsignedString(byteSize)
                    + " (expected: the size of the memory, at least 1)");
        }
        try {
            add(new RegionMemory.OnGpu(
                    new CudaRegion(name, deviceId, byteSize), gpus.open(handle, (int) deviceId, byteSize)));
        } catch (InferenceException e) {
            throw e.code() == ErrorCode.ALREADY_EXISTS ? e : new InferenceException(e.code(), region + e.getMessage());
        }
    }

    @Override
    public void unregisterCuda(String name) {
        SharedRegion found = regions.get(name);
        if (found != null && found.memory() instanceof RegionMemory.OnGpu) {
            found.unregister();
        }
    }

    @Override
    public void unregisterAllCuda() {
        unregisterAll(RegionMemory.OnGpu.class);
    }

    @Override
    public CudaRegion cudaRegion(String name) {
        SharedRegion found = regions.get(name);
        if (found != null && found.memory() instanceof RegionMemory.OnGpu gpu) {
            return gpu.region();
        }
        throw notFound("cuda shared memory region: '" + Quoted.text(name) + "'");
    }

    @Override
    public List<CudaRegion> cudaRegions() {
        return memories(RegionMemory.OnGpu.class)
                .map(RegionMemory.OnGpu::region)
                .toList();
    }

    /** Unregisters all regions of both kinds. */
    @Override
    public void close() {
        unregisterAll();
        unregisterAllCuda();
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

    /**
     * Opens shared memory segments by key, as {@code shm_open} does: files in one directory. Immutable.
     *
     * @param directory the directory in which the system keeps segments
     */
    private record SegmentFiles(Path directory) {
        /** The directory of the operating system. */
        static final SegmentFiles OF_THE_SYSTEM = new SegmentFiles(Path.of("/dev/shm"));

        /** The prefix of segments that the reference's backends share among themselves; not for clients. */
        static final String RESERVED = "triton_python_backend_shm_region_";

        private static final Pattern LEADING_SLASHES = Pattern.compile("^/+");

        static boolean isEmpty(String key) {
            return name(key).isEmpty();
        }

        static boolean isReserved(String key) {
            return name(key).startsWith(RESERVED);
        }

        /**
         * Opens a segment for reading and writing. A key or a link cannot lead out of the directory.
         *
         * @throws IOException if there is no such segment, or if it is not a regular file
         */
        FileChannel open(String key) throws IOException {
            String name = name(key);
            if (name.isEmpty()
                    || name.equals(".")
                    || name.equals("..")
                    || name.indexOf('/') >= 0
                    || name.indexOf(0) >= 0) {
                throw new FileSystemException(name, null, "no name of a segment");
            }
            Path file = directory.resolve(name);
            // A link, a pipe or a directory must not even be opened; an opened file cannot be a link even if it is
            // replaced
            // meanwhile.
            if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
                throw new FileSystemException(name, null, "no segment");
            }
            return FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
        }

        private static String name(String key) {
            return LEADING_SLASHES.matcher(key).replaceFirst("");
        }
    }
}
