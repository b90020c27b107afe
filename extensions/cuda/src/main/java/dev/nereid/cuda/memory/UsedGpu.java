package dev.nereid.cuda.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.CudaException;
import dev.nereid.cuda.EventPool;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/**
 * One GPU of the server: its context, its memory, and a thread for calls of the driver that wait for running kernels.
 * Safe for use by any thread.
 */
final class UsedGpu implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(UsedGpu.class.getName());

    /** From here on a call that makes all others wait is logged. */
    private static final Duration LONG_CALL = Duration.ofMillis(100);

    /** How often the GPU is asked whether it works. */
    private static final Duration CHECK_INTERVAL = Duration.ofMillis(100);

    private final GpuContext context;
    private final EventPool events;
    private final GpuMemory memory;

    /** Asks whether the GPU works as well: while a call of it waits, other threads would wait for the answer too. */
    private final ScheduledExecutorService maintenance;

    private final ScheduledFuture<?> checks;

    /**
     * Done since it was made: a query of it fails if the GPU has, by whatever part of the process. Queried by the
     * maintenance thread, so that it lives as long as that.
     */
    private final long probe;

    /** Takes memory of a GPU; throws an {@link InferenceException} if it has less. */
    UsedGpu(GpuContext context, long poolBytes) {
        this.context = context;
        events = new EventPool(context);
        memory = new GpuMemory(context, events, poolBytes);
        probe = context.call(CudaDriver::createEvent);
        maintenance = Executors.newSingleThreadScheduledExecutor(Thread.ofPlatform()
                .daemon()
                .name("gpu-" + context.gpu() + "-maintenance")
                .factory());
        checks = maintenance.scheduleWithFixedDelay(
                this::check, CHECK_INTERVAL.toMillis(), CHECK_INTERVAL.toMillis(), TimeUnit.MILLISECONDS);
    }

    GpuContext context() {
        return context;
    }

    GpuMemory memory() {
        return memory;
    }

    /** Asks the GPU whether it works. Runs on the maintenance thread, or in tests. */
    void check() {
        try {
            boolean ignored = context.isDone(probe);
        } catch (GpuException e) { // which the context remembers
            LOG.log(System.Logger.Level.TRACE, "failed", e);
        } catch (RuntimeException | Error e) { // an exception would end the checks for good
            LOG.log(System.Logger.Level.ERROR, "GPU not asked whether it works", e);
        }
    }

    /** Opens memory of another process, and checks its size. */
    GpuAccess.Opened open(ByteBuffer handle, long byteSize) {
        long address;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(CudaDriver.IPC_HANDLE_SIZE);
            copy.copyFrom(MemorySegment.ofBuffer(handle));
            address = context.call(driver -> driver.openMemory(copy.address()));
        } catch (GpuException e) {
            checkFailure();
            throw invalid("the handle opens no memory: " + e.getMessage()
                    + " (expected: a handle of cudaIpcGetMemHandle of a process that lives)");
        }
        OpenedMemory opened = new OpenedMemory(address, byteSize);
        try {
            long size = context.call(driver -> driver.allocationSize(address));
            if (byteSize > size) {
                throw invalid("byte_size " + byteSize + " (expected: at most " + size + ", the size of the memory)");
            }
            return opened;
        } catch (GpuException e) {
            opened.close();
            checkFailure();
            throw invalid(String.valueOf(e.getMessage()));
        } catch (RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    private void checkFailure() {
        Optional<String> failure = memory.failure();
        if (failure.isPresent()) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, failure.get());
        }
    }

    private static InferenceException invalid(String problem) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, problem);
    }

    /** Runs a call that may make all others wait. Its failure is logged. */
    private void maintain(String what, Consumer<CudaDriver> call) {
        long start = System.nanoTime();
        try {
            context.run(call);
        } catch (GpuException | CudaException e) {
            LOG.log(System.Logger.Level.WARNING, "{0} failed: {1}", what, e.getMessage());
        }
        Duration taken = Duration.ofNanos(System.nanoTime() - start);
        if (taken.compareTo(LONG_CALL) > 0) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "{0} took {1} ms, in which no kernel started on GPU {2}",
                    what,
                    taken.toMillis(),
                    context.gpu());
        }
    }

    /** Frees the memory, or leaves it if some of it is in use still. */
    @Override
    public void close() {
        checks.cancel(false);
        maintenance.close();
        context.release(driver -> driver.destroyEvent(probe));
        if (memory.bytesInUse() == 0) {
            memory.close();
            events.close();
        }
    }

    /** Memory of another process. */
    private final class OpenedMemory implements GpuAccess.Opened {
        private final long address;
        private final MemorySegment segment;
        private final AtomicBoolean closed = new AtomicBoolean();

        OpenedMemory(long address, long byteSize) {
            this.address = address;
            segment = GpuMemory.view(address, byteSize);
        }

        @Override
        public MemorySegment segment() {
            return segment;
        }

        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                maintenance.execute(
                        () -> maintain("closing memory of another process", driver -> driver.closeMemory(address)));
            }
        }
    }
}
