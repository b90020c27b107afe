package dev.nereid.cuda;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The use of one GPU by this process: makes its context current before each call, and remembers a failure that only a
 * new process recovers from. Safe for use by any thread; one that is virtual keeps its carrier during a call, since
 * nothing in it blocks in Java.
 */
public final class GpuContext {
    private static final Duration MAX_WAIT = Duration.ofMinutes(1);

    private final CudaDriver driver;
    private final int gpu;
    private final long context;

    /** Set once: the first failure after which the GPU cannot be used. */
    private final AtomicReference<@Nullable CudaException> failure = new AtomicReference<>();

    /**
     * Creates or finds the primary context of a GPU. Takes up to some 150 ms, and 500 MiB of its memory.
     *
     * @param driver the driver, initialized
     * @throws CudaException if it has none
     */
    public GpuContext(CudaDriver driver, int gpu) {
        this.driver = driver;
        this.gpu = gpu;
        context = driver.retainPrimaryContext(driver.device(gpu));
    }

    /** Opens the driver and the primary context of a GPU; fails with the missing piece, or if there is no such GPU. */
    public static GpuContext open(int gpu) {
        try {
            CudaDriver driver = new LibCuda(LibCuda.NAME);
            driver.init();
            return new GpuContext(driver, gpu);
        } catch (IOException | CudaException e) {
            throw new GpuException("GPU " + gpu + ": CUDA driver: " + e.getMessage());
        }
    }

    /** Returns the handle of the context, a {@code CUcontext}. */
    public long handle() {
        return context;
    }

    public int gpu() {
        return gpu;
    }

    /** Returns the failure that ended the use of the GPU, if there was one. */
    public Optional<CudaException> failure() {
        return Optional.ofNullable(failure.get());
    }

    /** Calls the driver without blocking; throws {@link GpuException} if that fails, or the GPU has failed. */
    public <T> T call(Function<CudaDriver, T> call) {
        checkFailure();
        try {
            driver.setCurrent(context);
            return call.apply(driver);
        } catch (CudaException e) {
            if (e.isSticky()) {
                failure.compareAndSet(null, e);
            }
            throw unavailable(String.valueOf(e.getMessage()));
        }
    }

    /** Calls the driver for no result, as {@link #call}. */
    public void run(Consumer<CudaDriver> call) {
        call(used -> {
            call.accept(used);
            return true;
        });
    }

    /**
     * Calls the driver to free a resource. Does nothing where the GPU has failed, or fails by this call: its resources
     * then end with the process.
     *
     * @throws GpuException if the call fails for another reason
     */
    public void release(Consumer<CudaDriver> call) {
        try {
            if (failure().isEmpty()) {
                run(call);
            }
        } catch (GpuException e) {
            if (failure().isEmpty()) {
                throw e;
            }
        }
    }

    /**
     * Asks whether an event is done. Any error ends the use of the GPU: the event is ours and alive, so that the error
     * is of the work before it, or of what this process believes about the GPU.
     *
     * @param event an event of this GPU that lives
     * @throws GpuException if the GPU has failed
     */
    public boolean isDone(long event) {
        return ask(used -> used.isDone(event));
    }

    /**
     * Makes a stream wait for work that writes a tensor, which may be pending on another stream or GPU. Blocks only for
     * work without an event.
     *
     * @param stream the stream that reads it
     * @throws BackendException if the work failed, or does not end in a minute
     * @throws GpuException if this GPU has failed
     */
    public void await(Fence fence, long stream) {
        boolean appended = fence.withEvent(event -> run(used -> used.waitFor(stream, event)));
        if (!appended && !fence.await(MAX_WAIT)) {
            throw new BackendException(
                    ErrorCode.INTERNAL, "GPU " + gpu + ": work did not end within " + MAX_WAIT.toSeconds() + " s");
        }
    }

    /** Marks the end of the work of a stream. Any error ends the use of the GPU: the end of the work is not known. */
    void record(long event, long stream) {
        boolean ignored = ask(used -> {
            used.record(event, stream);
            return true;
        });
    }

    private boolean ask(Predicate<CudaDriver> call) {
        checkFailure();
        try {
            driver.setCurrent(context);
            return call.test(driver);
        } catch (CudaException e) {
            failure.compareAndSet(null, e);
            throw unavailable(String.valueOf(e.getMessage()));
        }
    }

    private void checkFailure() {
        CudaException failed = failure.get();
        if (failed != null) {
            throw unavailable("has failed: " + failed.getMessage() + ": restart the server");
        }
    }

    private GpuException unavailable(String problem) {
        return new GpuException("GPU " + gpu + ": " + problem);
    }
}
