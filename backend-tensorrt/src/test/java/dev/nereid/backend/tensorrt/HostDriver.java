package dev.nereid.backend.tensorrt;

import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.CudaException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A driver whose device memory is that of the host: copies are made at once, work is done when it is enqueued. It counts
 * what lives, and graphs that are launched. Safe for use by any thread.
 */
final class HostDriver {
    private final Map<Long, Arena> blocks = new ConcurrentHashMap<>();
    private final Set<Long> handles = ConcurrentHashMap.newKeySet();
    private final AtomicLong next = new AtomicLong(1 << 16);
    private final AtomicInteger launched = new AtomicInteger();
    private volatile boolean failed;
    private volatile boolean spoilsCaptures;

    /** Returns how many blocks of memory, streams, events and graphs live. */
    int living() {
        return blocks.size() + handles.size();
    }

    int launchedGraphs() {
        return launched.get();
    }

    /** Lets every later call fail as on a GPU that has failed. */
    void fail() {
        failed = true;
    }

    /** Lets every capture end without a graph. */
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
                long size = (long) arguments[2];
                memory((long) arguments[1], size).copyFrom(memory((long) arguments[0], size));
                yield 0;
            }
            case "createStream", "createEvent", "instantiate" -> create();
            case "endCapture" -> spoilsCaptures ? 0L : create();
            case "destroyStream", "destroyEvent", "destroyGraph", "destroyExecutable" -> {
                if (!handles.remove((Long) arguments[0])) {
                    throw new AssertionError(name + ": not alive");
                }
                yield 0;
            }
            case "launchGraph" -> launched.incrementAndGet();
            case "isDone" -> true;
            case "setCurrent", "record", "waitFor", "beginCapture" -> 0;
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
