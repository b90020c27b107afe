package dev.nereid.examples.ptx;

import dev.nereid.cuda.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A driver whose device memory is that of the host, and whose only kernel adds one to each number. Copies and kernels
 * are done when they are enqueued. It knows what lives. Safe for use by any thread.
 */
final class KernelDriver {
    private static final int POINTER = Long.BYTES;

    private final Set<Long> handles = ConcurrentHashMap.newKeySet();
    private final AtomicLong next = new AtomicLong(1 << 16);

    /** Returns how many streams, events and modules live. */
    int living() {
        return handles.size();
    }

    CudaDriver driver() {
        return (CudaDriver) Proxy.newProxyInstance(
                CudaDriver.class.getClassLoader(),
                new Class<?>[] {CudaDriver.class},
                (proxy, method, arguments) -> call(method.getName(), arguments == null ? new Object[0] : arguments));
    }

    private Object call(String name, Object... arguments) {
        return switch (name) {
            case "device" -> arguments[0];
            case "retainPrimaryContext" -> 1L;
            case "createStream", "createEvent", "loadModule" -> create();
            case "function" -> (long) arguments[0];
            case "copyFromHost", "copyToHost" -> {
                long size = (long) arguments[2];
                memory((long) arguments[1], size).copyFrom(memory((long) arguments[0], size));
                yield 0;
            }
            case "launch" -> {
                increment(memory((long) arguments[4], 3 * POINTER));
                yield 0;
            }
            case "destroyStream", "destroyEvent", "unloadModule" -> {
                if (!handles.remove((Long) arguments[0])) {
                    throw new AssertionError(name + ": not alive");
                }
                yield 0;
            }
            case "isDone" -> true;
            case "setCurrent", "record", "waitFor" -> 0;
            default -> throw new AssertionError(name + ": not expected");
        };
    }

    private static void increment(MemorySegment addresses) {
        long count = value(addresses, 2) & 0xFFFF_FFFFL;
        MemorySegment in = memory(value(addresses, 0), count * Float.BYTES);
        MemorySegment out = memory(value(addresses, 1), count * Float.BYTES);
        for (long i = 0; i < count; i++) {
            out.setAtIndex(ValueLayout.JAVA_FLOAT, i, in.getAtIndex(ValueLayout.JAVA_FLOAT, i) + 1);
        }
    }

    /** Reads the parameter of a kernel whose address is at this index. */
    private static long value(MemorySegment addresses, int index) {
        return memory(addresses.getAtIndex(ValueLayout.JAVA_LONG, index), POINTER)
                .get(ValueLayout.JAVA_LONG, 0);
    }

    private long create() {
        long handle = next.incrementAndGet();
        handles.add(handle);
        return handle;
    }

    @SuppressWarnings("restricted") // the sizes are those that the backend gives
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize, Arena.global(), null);
    }
}
