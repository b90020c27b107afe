package dev.nereid.backend.tensorrt;

import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.CudaException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A driver whose device memory is that of the host. Copies are made and work is done when they are enqueued, or, if it is
 * late, one after the other with each query of an event behind them. It counts what lives, and graphs that are launched.
 * Safe for use by any thread.
 */
final class HostDriver {
    private final Map<Long, Arena> blocks = new ConcurrentHashMap<>();
    private final Set<Long> handles = ConcurrentHashMap.newKeySet();
    private final AtomicLong next = new AtomicLong(1 << 16);
    private final AtomicInteger launched = new AtomicInteger();
    /** The work of each stream that is not done yet. */
    private final Map<Long, Deque<Runnable>> work = new HashMap<>();

    /** Of each stream how much was enqueued, and how much is done. */
    private final Map<Long, Integer> enqueued = new HashMap<>();

    private final Map<Long, Integer> done = new HashMap<>();

    /** The captured work of each stream that captures. */
    private final Map<Long, List<Runnable>> captures = new HashMap<>();

    /** The work of each graph. */
    private final Map<Long, List<Runnable>> graphs = new ConcurrentHashMap<>();

    /** The last mark of each event. */
    private final Map<Long, Mark> marks = new HashMap<>();

    private final ReentrantLock lock = new ReentrantLock();
    private volatile boolean late;
    private volatile boolean failed;
    private volatile boolean spoilsCaptures;

    /** Returns how many blocks of memory, streams, events and graphs live. */
    int living() {
        return blocks.size() + handles.size();
    }

    int launchedGraphs() {
        return launched.get();
    }

    /** A place in a stream: behind the work that was enqueued so far. */
    private record Mark(long stream, int position) {}

    /** Makes work wait until an event behind it is queried. */
    void beLate() {
        late = true;
    }

    /** Enqueues work. */
    void enqueue(long stream, Runnable task) {
        lock.lock();
        try {
            List<Runnable> capture = captures.get(stream);
            if (capture != null) {
                capture.add(task);
            } else if (late) {
                work.computeIfAbsent(stream, _ -> new ArrayDeque<>()).add(task);
                enqueued.merge(stream, 1, Integer::sum);
            } else {
                task.run();
            }
        } finally {
            lock.unlock();
        }
    }

    private long endCapture(long stream) {
        lock.lock();
        try {
            List<Runnable> captured = captures.remove(stream);
            if (spoilsCaptures || captured == null) {
                return 0;
            }
            long graph = create();
            graphs.put(graph, captured);
            return graph;
        } finally {
            lock.unlock();
        }
    }

    private long instantiate(long graph) {
        long executable = create();
        graphs.put(executable, graphs.get(graph));
        return executable;
    }

    private int launch(long executable, long stream) {
        graphs.get(executable).forEach(task -> enqueue(stream, task));
        return launched.incrementAndGet();
    }

    private int beginCapture(long stream) {
        lock.lock();
        try {
            captures.put(stream, new ArrayList<>());
            return 0;
        } finally {
            lock.unlock();
        }
    }

    private void record(long event, long stream) {
        lock.lock();
        try {
            marks.put(event, new Mark(stream, enqueued.getOrDefault(stream, 0)));
        } finally {
            lock.unlock();
        }
    }

    /** Does one piece of the work before an event; returns whether there was none. */
    private boolean isDone(long event) {
        lock.lock();
        try {
            Mark mark = marks.get(event);
            return mark == null || reached(mark) || (step(mark.stream()) && reached(mark));
        } finally {
            lock.unlock();
        }
    }

    private boolean reached(Mark mark) {
        return done.getOrDefault(mark.stream(), 0) >= mark.position();
    }

    private boolean step(long stream) {
        Deque<Runnable> tasks = work.get(stream);
        Runnable task = tasks == null ? null : tasks.poll();
        if (task != null) {
            task.run();
            done.merge(stream, 1, Integer::sum);
        }
        return true;
    }

    /** Makes a stream wait for an event as it is now. */
    private void waitFor(long stream, long event) {
        lock.lock();
        try {
            Mark mark = marks.get(event);
            if (mark != null) {
                enqueue(stream, () -> finish(mark));
            }
        } finally {
            lock.unlock();
        }
    }

    private void finish(Mark mark) {
        while (!reached(mark)) {
            boolean ignored = step(mark.stream());
        }
    }

    /** Makes every later call fail as on a GPU that has failed. */
    void fail() {
        failed = true;
    }

    /** Makes every capture end without a graph. */
    void spoilCaptures() {
        spoilsCaptures = true;
    }

    CudaDriver driver() {
        return (CudaDriver) Proxy.newProxyInstance(
                CudaDriver.class.getClassLoader(),
                new Class<?>[] {CudaDriver.class},
                (proxy, method, arguments) -> call(method.getName(), arguments == null ? new Object[0] : arguments));
    }

    private Object call(String name, Object... arguments) {
        if (failed) {
            throw new CudaException(name, 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
        }
        return switch (name) {
            case "device" -> arguments[0];
            case "retainPrimaryContext" -> 1L;
            case "greatestPriority" -> -5;
            case "allocate", "allocateHost" -> allocate((long) arguments[0]);
            case "free", "freeHost" -> {
                blocks.remove((Long) arguments[0]).close();
                yield 0;
            }
            case "copyFromHost", "copyToHost", "copy" -> {
                long from = (long) arguments[0];
                long to = (long) arguments[1];
                long size = (long) arguments[2];
                enqueue((long) arguments[3], () -> memory(to, size).copyFrom(memory(from, size)));
                yield 0;
            }
            case "createStream", "createEvent" -> create();
            case "instantiate" -> instantiate((long) arguments[0]);
            case "beginCapture" -> beginCapture((long) arguments[0]);
            case "endCapture" -> endCapture((long) arguments[0]);
            case "destroyStream", "destroyEvent", "destroyGraph", "destroyExecutable" -> {
                if (!handles.remove((Long) arguments[0])) {
                    throw new AssertionError(name + ": not alive");
                }
                yield 0;
            }
            case "launchGraph" -> launch((long) arguments[0], (long) arguments[1]);
            case "isDone" -> isDone((long) arguments[0]);
            case "record" -> {
                record((long) arguments[0], (long) arguments[1]);
                yield 0;
            }
            case "waitFor" -> {
                waitFor((long) arguments[0], (long) arguments[1]);
                yield 0;
            }
            case "setCurrent" -> 0;
            default -> throw new AssertionError(name + ": not expected");
        };
    }

    private long create() {
        long handle = next.incrementAndGet();
        handles.add(handle);
        return handle;
    }

    private long allocate(long byteSize) {
        Arena arena = Arena.ofShared();
        long address = arena.allocate(byteSize, 256).address();
        blocks.put(address, arena);
        return address;
    }

    @SuppressWarnings("restricted")
    static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, Arena.global(), null);
    }
}
