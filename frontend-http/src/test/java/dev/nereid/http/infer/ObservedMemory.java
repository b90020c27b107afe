package dev.nereid.http.infer;

import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;

/** Memory that reports allocations to a test, and waits for their release. Safe for use by any thread. */
final class ObservedMemory implements TensorMemory {
    private final LeakCheckingMemory memory;
    private final LongConsumer onAllocate;
    private final Set<TensorBuffer> open = ConcurrentHashMap.newKeySet();
    private final Semaphore returned = new Semaphore(0);

    ObservedMemory(LeakCheckingMemory memory, LongConsumer taking) {
        this.memory = memory;
        this.onAllocate = taking;
    }

    @Override
    public TensorBuffer allocate(long byteSize) {
        onAllocate.accept(byteSize);
        TensorBuffer buffer = memory.allocate(byteSize);
        open.add(buffer);
        return new TensorBuffer() {
            @Override
            public MemorySegment segment() {
                return buffer.segment();
            }

            @Override
            public void close() {
                buffer.close();
                open.remove(buffer);
                returned.release();
            }
        };
    }

    @Override
    public long bytesInUse() {
        return memory.bytesInUse();
    }

    /** Waits until all memory was released. */
    boolean awaitAllReturned(Duration timeout) throws InterruptedException {
        long end = System.nanoTime() + timeout.toNanos();
        while (!open.isEmpty()) {
            if (!returned.tryAcquire(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                return false;
            }
        }
        return true;
    }
}
