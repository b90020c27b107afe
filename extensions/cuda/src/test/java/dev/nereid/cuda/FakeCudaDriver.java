package dev.nereid.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A driver without a GPU, whose device memory is that of the host. Safe for use by any thread.
 *
 * <p>An event is done at the third query after its record; the copies before it are made then, and no earlier. What would
 * end the process with the driver, such as a query of a destroyed event, is an {@link AssertionError}.
 */
public final class FakeCudaDriver implements CudaDriver {
    private static final int QUERIES = 2;

    private final Map<Long, Arena> blocks = new ConcurrentHashMap<>();
    private final Map<Long, AtomicInteger> events = new ConcurrentHashMap<>();

    private final Map<Long, Stream> streams = new ConcurrentHashMap<>();

    /** Of each event its place in the stream that it was recorded on. */
    private final Map<Long, Place> recorded = new ConcurrentHashMap<>();

    /** Guards the streams: copies are made in the order of each, and after those that it waits for. */
    private final ReentrantLock lock = new ReentrantLock();

    private final Set<Long> graphs = ConcurrentHashMap.newKeySet();
    private final Map<Long, Long> sizes = new ConcurrentHashMap<>();
    private final AtomicInteger launches = new AtomicInteger();
    private final AtomicInteger opened = new AtomicInteger();
    private final AtomicLong handles = new AtomicLong(1 << 20);
    private final AtomicInteger allocations = new AtomicInteger();
    private final AtomicInteger queries = new AtomicInteger();
    private final ThreadLocal<Long> current = ThreadLocal.withInitial(() -> 0L);
    private volatile int failure;

    /** Makes every later call fail. */
    public void fail(int error) {
        failure = error;
    }

    /** Returns how many events, streams, graphs, and blocks of memory live. */
    public int living() {
        return events.size() + streams.size() + blocks.size() + graphs.size() + opened.get();
    }

    /** Returns how often memory was allocated. */
    public int allocations() {
        return allocations.get();
    }

    /** Returns how often an event was asked for. */
    public int queries() {
        return queries.get();
    }

    /** Returns how many events live. */
    public int events() {
        return events.size();
    }

    @Override
    public int version() {
        return 12040;
    }

    @Override
    public void init() {}

    @Override
    public int deviceCount() {
        return 1;
    }

    @Override
    public int device(int ordinal) {
        return ordinal;
    }

    @Override
    public String name(int device) {
        return "Fake";
    }

    @Override
    public String uuid(int device) {
        return "GPU-0";
    }

    @Override
    public int attribute(int attribute, int device) {
        return 9;
    }

    @Override
    public long totalMemory(int device) {
        return 1L << 40;
    }

    @Override
    public long retainPrimaryContext(int device) {
        return 0xC0DEL + device;
    }

    @Override
    public void setCurrent(long context) {
        check("cuCtxSetCurrent");
        current.set(context);
    }

    @Override
    public long allocate(long byteSize) {
        needsContext("cuMemAlloc_v2");
        allocations.incrementAndGet();
        if (byteSize > 1L << 32) {
            throw new CudaException("cuMemAlloc_v2", 2, "CUDA_ERROR_OUT_OF_MEMORY");
        }
        Arena arena = Arena.ofShared();
        long address = arena.allocate(byteSize, 512).fill((byte) -1).address();
        blocks.put(address, arena);
        sizes.put(address, byteSize);
        return address;
    }

    @Override
    public void free(long address) {
        check("cuMemFree_v2");
        Arena arena = blocks.remove(address);
        if (arena == null) {
            throw new CudaException("cuMemFree_v2", 1, "CUDA_ERROR_INVALID_VALUE");
        }
        arena.close();
    }

    @Override
    public long allocateHost(long byteSize) {
        return allocate(byteSize);
    }

    @Override
    public void freeHost(long address) {
        free(address);
    }

    @Override
    public void copyFromHost(long host, long device, long byteSize, long stream) {
        copy(host, device, byteSize, stream);
    }

    @Override
    public void copyToHost(long device, long host, long byteSize, long stream) {
        copy(device, host, byteSize, stream);
    }

    @Override
    public void copy(long from, long to, long byteSize, long stream) {
        needs(streams.containsKey(stream), "stream");
        check("cuMemcpyDtoDAsync_v2");
        append(stream, () -> memory(to, byteSize).copyFrom(memory(from, byteSize)));
    }

    @Override
    public void copyPeer(long from, long fromContext, long to, long toContext, long byteSize, long stream) {
        needs(fromContext != toContext, "context");
        copy(from, to, byteSize, stream);
    }

    @Override
    public void fill(long address, byte value, long byteSize, long stream) {
        needs(streams.containsKey(stream), "stream");
        check("cuMemsetD8Async");
        append(stream, () -> memory(address, byteSize).fill(value));
    }

    @Override
    public long createStream() {
        needsContext("cuStreamCreate");
        long stream = handles.incrementAndGet();
        streams.put(stream, new Stream());
        return stream;
    }

    @Override
    public void destroyStream(long stream) {
        check("cuStreamDestroy_v2");
        Stream left = streams.remove(stream);
        needs(left != null, "stream");
        make(new Place(Objects.requireNonNull(left), Long.MAX_VALUE));
    }

    @Override
    public void waitFor(long stream, long event) {
        needs(streams.containsKey(stream) && events.containsKey(event), "stream or event");
        Place before = recorded.get(event);
        if (before != null) {
            append(stream, () -> make(before));
        }
    }

    @Override
    public long createEvent() {
        needsContext("cuEventCreate");
        long event = handles.incrementAndGet();
        events.put(event, new AtomicInteger());
        return event;
    }

    @Override
    public void destroyEvent(long event) {
        check("cuEventDestroy_v2");
        needs(events.remove(event) != null, "event");
        recorded.remove(event);
    }

    @Override
    public void record(long event, long stream) {
        needs(streams.containsKey(stream), "stream");
        check("cuEventRecord");
        Stream behind = Objects.requireNonNull(streams.get(stream));
        lock.lock();
        try {
            recorded.put(event, new Place(behind, behind.appended));
        } finally {
            lock.unlock();
        }
        living(event).set(QUERIES);
    }

    private void append(long stream, Runnable copy) {
        Stream to = Objects.requireNonNull(streams.get(stream));
        lock.lock();
        try {
            to.copies.add(copy);
            to.appended++;
        } finally {
            lock.unlock();
        }
    }

    /** Makes the copies of a stream up to a place, and before each what it waits for. */
    private void make(Place end) {
        lock.lock();
        try {
            Stream stream = end.stream();
            while (stream.made < end.position() && !stream.copies.isEmpty()) {
                stream.made++;
                stream.copies.remove().run();
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    @SuppressWarnings("ThreadPriorityCheck") // widens the window for other threads; nothing relies on it
    public boolean isDone(long event) {
        AtomicInteger left = living(event);
        check("cuEventQuery");
        queries.incrementAndGet();
        Thread.yield();
        living(event);
        boolean done = left.getAndUpdate(now -> Math.max(0, now - 1)) == 0;
        Place place = recorded.get(event);
        if (done && place != null) {
            make(place);
        }
        return done;
    }

    @Override
    public long createStream(int priority) {
        return createStream();
    }

    @Override
    public int greatestPriority() {
        return -5;
    }

    @Override
    public long freeMemory() {
        needsContext("cuMemGetInfo_v2");
        return (1L << 40)
                - blocks.keySet().stream().mapToLong(this::allocationSize).sum();
    }

    @Override
    public long loadModule(long image) {
        needsContext("cuModuleLoadDataEx");
        return handles.incrementAndGet();
    }

    @Override
    public void unloadModule(long module) {
        check("cuModuleUnload");
    }

    @Override
    public long function(long module, String name) {
        check("cuModuleGetFunction");
        return handles.incrementAndGet();
    }

    @Override
    public void launch(long function, int blocksOfGrid, int threads, long stream, long parameters) {
        needs(streams.containsKey(stream), "stream");
        check("cuLaunchKernel");
        launches.incrementAndGet();
    }

    /** Returns how many kernels and graphs were launched. */
    public int launches() {
        return launches.get();
    }

    @Override
    public void beginCapture(long stream) {
        needs(streams.containsKey(stream), "stream");
        check("cuStreamBeginCapture_v2");
    }

    @Override
    public long endCapture(long stream) {
        check("cuStreamEndCapture");
        return graph();
    }

    @Override
    public long instantiate(long graph) {
        check("cuGraphInstantiateWithFlags");
        needs(graphs.contains(graph), "graph");
        return graph();
    }

    private long graph() {
        long graph = handles.incrementAndGet();
        graphs.add(graph);
        return graph;
    }

    @Override
    public void launchGraph(long executable, long stream) {
        needs(graphs.contains(executable) && streams.containsKey(stream), "graph or stream");
        check("cuGraphLaunch");
        launches.incrementAndGet();
    }

    @Override
    public void destroyGraph(long graph) {
        needs(graphs.remove(graph), "graph");
    }

    @Override
    public void destroyExecutable(long executable) {
        needs(graphs.remove(executable), "graph");
    }

    @Override
    public void exportMemory(long address, long handle) {
        check("cuIpcGetMemHandle");
        memory(handle, IPC_HANDLE_SIZE).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, address);
    }

    /** Opens memory of this driver itself, whose handle is its address. */
    @Override
    public long openMemory(long handle) {
        needsContext("cuIpcOpenMemHandle_v2");
        long address = memory(handle, IPC_HANDLE_SIZE).get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
        if (!blocks.containsKey(address)) {
            throw new CudaException("cuIpcOpenMemHandle_v2", 1, "CUDA_ERROR_INVALID_VALUE");
        }
        opened.incrementAndGet();
        return address;
    }

    @Override
    public void closeMemory(long address) {
        check("cuIpcCloseMemHandle");
        needs(opened.getAndDecrement() > 0, "opened memory");
    }

    /** Returns how often memory of another process is open. */
    public int opened() {
        return opened.get();
    }

    @Override
    public long allocationSize(long address) {
        return Objects.requireNonNull(sizes.get(address));
    }

    @Override
    public boolean canAccessPeer(int device, int peer) {
        return true;
    }

    @Override
    public void enablePeerAccess(long peerContext) {}

    /** The copies of a stream that are not made yet, in their order. */
    private static final class Stream {
        private final Queue<Runnable> copies = new ArrayDeque<>();
        private long appended;
        private long made;
    }

    /**
     * A place in a stream.
     *
     * @param position the number of copies before it
     */
    private record Place(Stream stream, long position) {}

    private AtomicInteger living(long event) {
        AtomicInteger queries = events.get(event);
        needs(queries != null, "event");
        return Objects.requireNonNull(queries);
    }

    private void needsContext(String function) {
        check(function);
        if (current.get() == 0) {
            throw new CudaException(function, 201, "CUDA_ERROR_INVALID_CONTEXT");
        }
    }

    private void check(String function) {
        if (failure != 0) {
            throw new CudaException(function, failure, "CUDA_ERROR");
        }
    }

    private static void needs(boolean valid, String handle) {
        if (!valid) {
            throw new AssertionError(handle + ": destroyed or never made; the driver would end the process");
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, Arena.global(), null);
    }
}
