package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Shared memory for tests, with regions in memory of the process. Safe for use by any thread. */
public final class FakeSharedMemory implements SharedMemory {
    private static final int HANDLE_SIZE = 64;

    private record Entry(Region region, MemorySegment memory) {}

    private final Map<String, Entry> entries = new ConcurrentSkipListMap<>();
    private final Map<String, CudaRegion> cuda = new ConcurrentSkipListMap<>();

    /** The threads that registered memory of GPUs; {@code null} where there are none. */
    private volatile @Nullable Queue<Thread> cudaThreads;

    private final AtomicInteger leases = new AtomicInteger();
    private final List<String> events = new CopyOnWriteArrayList<>();

    FakeSharedMemory() {}

    /**
     * Returns the memory of a region, as the client would see it.
     *
     * @param name the region's name
     */
    public MemorySegment memory(String name) {
        return entry(name, "shared").memory();
    }

    /** Gives the server a GPU, number 0; any handle of 64 bytes opens its memory. */
    public void addGpu() {
        cudaThreads = new ConcurrentLinkedQueue<>();
    }

    /**
     * Returns on which threads memory of GPUs was registered.
     *
     * @return the threads, in the order of the calls
     */
    public List<Thread> cudaThreads() {
        Queue<Thread> threads = cudaThreads;
        return threads == null ? List.of() : List.copyOf(threads);
    }

    /**
     * Returns the number of leases.
     *
     * @return the open leases
     */
    public int leases() {
        return leases.get();
    }

    /**
     * Returns the events of leases and of tests, in order. They are {@code leased in} for a lease of the region
     * {@code in}, {@code released in} for the first
     * {@link dev.nereid.api.memory.SharedMemory.Lease#releaseRegistration} of an open lease, {@code closed in} for its
     * close.
     *
     * @return the events so far
     */
    public List<String> events() {
        return List.copyOf(events);
    }

    /** Adds an event of the test, such as the response that a client gets. */
    public void note(String event) {
        events.add(event);
    }

    /**
     * Registers memory of the test.
     *
     * @param name the region's name
     * @param memory the memory; stays valid while the region is used
     */
    public void register(String name, MemorySegment memory) {
        put(new Entry(new Region(name, "/" + name, 0, memory.byteSize()), memory));
    }

    @Override
    public void register(String name, String key, long offset, long byteSize) {
        if (offset < 0 || byteSize < 0) {
            throw invalid("failed to register shared memory region '" + name + "': invalid args");
        }
        put(new Entry(new Region(name, key, offset, byteSize), Arena.ofAuto().allocate(byteSize, 64)));
    }

    private void put(Entry entry) {
        String name = entry.region().name();
        if (entries.putIfAbsent(name, entry) != null) {
            throw new InferenceException(
                    ErrorCode.ALREADY_EXISTS, "shared memory region '" + name + "' already in manager");
        }
    }

    @Override
    public void unregister(String name) {
        entries.remove(name);
    }

    @Override
    public void unregisterAll() {
        entries.clear();
    }

    @Override
    public Region region(String name) {
        return entry(name, "system shared").region();
    }

    @Override
    public List<Region> regions() {
        return entries.values().stream().map(Entry::region).toList();
    }

    @Override
    public Lease lease(String name, long offset, long byteSize) {
        MemorySegment memory = entry(name, "shared").memory();
        if (Long.compareUnsigned(offset, memory.byteSize()) > 0) {
            throw invalid("Invalid offset for shared memory region: '" + name + "'");
        }
        if (Long.compareUnsigned(byteSize, memory.byteSize() - offset) > 0) {
            throw invalid("Invalid offset + byte size for shared memory region: '" + name + "'");
        }
        leases.incrementAndGet();
        events.add("leased " + name);
        return new Part(name, memory.asSlice(offset, byteSize), this, new AtomicBoolean(), new AtomicBoolean());
    }

    @Override
    public void registerCuda(String name, ByteBuffer handle, long deviceId, long byteSize) {
        Queue<Thread> threads = cudaThreads;
        if (threads == null) {
            throw invalid("failed to register CUDA shared memory region: '" + name + "', GPUs not supported");
        }
        threads.add(Thread.currentThread());
        if (handle.remaining() != HANDLE_SIZE || deviceId != 0) {
            throw invalid("failed to register CUDA shared memory region '" + name + "': of a test");
        }
        if (cuda.putIfAbsent(name, new CudaRegion(name, deviceId, byteSize)) != null) {
            throw new InferenceException(
                    ErrorCode.ALREADY_EXISTS, "shared memory region '" + name + "' already in manager");
        }
    }

    @Override
    public void unregisterCuda(String name) {
        cuda.remove(name);
    }

    @Override
    public void unregisterAllCuda() {
        cuda.clear();
    }

    @Override
    public CudaRegion cudaRegion(String name) {
        CudaRegion region = cuda.get(name);
        if (region == null) {
            throw new InferenceException(
                    ErrorCode.NOT_FOUND, "Unable to find cuda shared memory region: '" + name + "'");
        }
        return region;
    }

    @Override
    public List<CudaRegion> cudaRegions() {
        return List.copyOf(cuda.values());
    }

    private Entry entry(String name, String kind) {
        Entry entry = entries.get(name);
        if (entry == null) {
            throw new InferenceException(
                    ErrorCode.NOT_FOUND, "Unable to find " + kind + " memory region: '" + name + "'");
        }
        return entry;
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }

    private record Part(
            String name,
            MemorySegment segment,
            FakeSharedMemory owner,
            AtomicBoolean isReleased,
            AtomicBoolean isClosed)
            implements Lease {
        @Override
        public void releaseRegistration() { // this fake forgets a region when it is unregistered
            if (!isClosed.get() && isReleased.compareAndSet(false, true)) {
                owner.events.add("released " + name);
            }
        }

        @Override
        public void close() {
            if (!isClosed.compareAndSet(false, true)) {
                throw new IllegalStateException("lease: closed twice");
            }
            owner.leases.decrementAndGet();
            owner.events.add("closed " + name);
        }
    }
}
