package dev.nereid.cuda;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The use of one GPU by this process: makes its context current before each call, and remembers a failure that only a
 * new process recovers from. Safe for use by any thread; one that is virtual keeps its carrier during a call, since
 * nothing in it blocks in Java.
 */
final class GpuContext {
    private final CudaDriver driver;
    private final int gpu;
    private final long context;

    /** Set once: the first failure after which the GPU cannot be used. */
    private final AtomicReference<@Nullable CudaException> failure = new AtomicReference<>();

    /**
     * Creates or finds the primary context of a GPU. Takes up to some 150 ms, and 500 MiB of its memory.
     *
     * @param driver the driver, initialized
     * @param gpu the number of the GPU
     * @throws CudaException if it has none
     */
    GpuContext(CudaDriver driver, int gpu) {
        this.driver = driver;
        this.gpu = gpu;
        context = driver.retainPrimaryContext(driver.device(gpu));
    }

    /** Returns the number of the GPU. */
    int gpu() {
        return gpu;
    }

    /** Returns the failure that ended the use of the GPU, if there was one. */
    Optional<CudaException> failure() {
        return Optional.ofNullable(failure.get());
    }

    /**
     * Calls the driver.
     *
     * @param call the call, which does not block
     * @return its result
     * @throws InferenceException with {@link ErrorCode#UNAVAILABLE} if it fails, or the GPU has failed
     */
    <T> T call(Function<CudaDriver, T> call) {
        CudaException failed = failure.get();
        if (failed != null) {
            throw unavailable("has failed: " + failed.getMessage() + ": restart the server");
        }
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

    /**
     * Calls the driver for no result.
     *
     * @param call the call, which does not block
     * @throws InferenceException with {@link ErrorCode#UNAVAILABLE} if it fails, or the GPU has failed
     */
    void run(Consumer<CudaDriver> call) {
        call(used -> {
            call.accept(used);
            return true;
        });
    }

    /**
     * Asks whether an event is done. Any error ends the use of the GPU: the event is ours and alive, so that the error
     * is of the work before it, or of what this process believes about the GPU.
     *
     * @throws InferenceException with {@link ErrorCode#UNAVAILABLE} if the GPU has failed
     */
    boolean isDone(long event) {
        return call(used -> {
            try {
                return used.isDone(event);
            } catch (CudaException e) {
                failure.compareAndSet(null, e);
                throw e;
            }
        });
    }

    private InferenceException unavailable(String problem) {
        return new InferenceException(ErrorCode.UNAVAILABLE, "GPU " + gpu + ": " + problem);
    }
}
