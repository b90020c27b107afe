package dev.nereid.cuda;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * The events of one GPU, made as needed and used again. Safe for use by any thread.
 *
 * <p>An event is either idle here or belongs to one fence, which returns it when nobody can query it any more; idle
 * events alone are destroyed. After the close, an event is destroyed when it is returned: whoever sees {@code closed}
 * after adding one empties the queue, so none is left whichever comes first.
 */
public final class EventPool implements AutoCloseable {
    private final GpuContext gpu;
    private final PollingWait wait;
    private final ConcurrentLinkedQueue<Long> idle = new ConcurrentLinkedQueue<>();
    private final AtomicInteger inUse = new AtomicInteger();
    private final AtomicBoolean closed = new AtomicBoolean();

    public EventPool(GpuContext gpu) {
        this(gpu, PollingWait.system());
    }

    EventPool(GpuContext gpu, PollingWait wait) {
        this.gpu = gpu;
        this.wait = wait;
    }

    /** Marks the end of a stream's work so far by a fence that the caller releases once; fails if the GPU failed. */
    public EventFence record(long stream) {
        return recordAfter(_ -> {}, stream);
    }

    /**
     * Appends work to a stream, and marks its end. When this throws, no work is pending any more: work that was
     * appended before is awaited, so that the caller may free the memory that it uses.
     *
     * @param work appends the work
     * @return a fence, owned by the caller, who releases it once
     * @throws GpuException if there is no event, the work is refused, or the GPU failed
     */
    public EventFence recordAfter(Consumer<CudaDriver> work, long stream) {
        Long pooled = idle.poll();
        long event = pooled != null ? pooled : gpu.call(CudaDriver::createEvent);
        inUse.incrementAndGet();
        boolean appended = false;
        try {
            append(work, event, stream);
            appended = true;
        } finally {
            if (!appended) {
                giveBack(event);
            }
        }
        return new EventFence(this, gpu, wait, event);
    }

    private void append(Consumer<CudaDriver> work, long event, long stream) {
        boolean appended = false;
        try {
            gpu.run(work);
            appended = true;
        } finally {
            if (appended || gpu.failure().isEmpty()) {
                gpu.record(event, stream);
            }
            if (!appended && gpu.failure().isEmpty()) {
                boolean ignored = wait.until(() -> gpu.isDone(event), Long.MAX_VALUE);
            }
        }
    }

    /** Takes back an event that nobody can query any more. */
    void giveBack(long event) {
        inUse.decrementAndGet();
        idle.add(event);
        if (closed.get()) {
            destroyIdle();
        }
    }

    /** Returns the number of events that belong to fences. */
    public int inUse() {
        return inUse.get();
    }

    /** Destroys the idle events now and the others as they are returned. */
    @Override
    public void close() {
        closed.set(true);
        destroyIdle();
    }

    private void destroyIdle() {
        for (Long event = idle.poll(); event != null; event = idle.poll()) {
            destroy(event);
        }
    }

    private void destroy(long event) {
        gpu.release(driver -> driver.destroyEvent(event));
    }
}
