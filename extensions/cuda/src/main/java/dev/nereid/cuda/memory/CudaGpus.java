package dev.nereid.cuda.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.cuda.CudaDriver;
import dev.nereid.cuda.CudaException;
import dev.nereid.cuda.Gpu;
import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.cuda.GpuException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The GPUs of the machine through the CUDA driver. Safe for use by any thread.
 *
 * <p>Where there is a GPU, opening takes some 200 ms for the driver and 150 ms for each GPU, and 500 MiB of its memory
 * for the context of the process.
 */
public final class CudaGpus implements GpuAccess {
    private final Map<Integer, UsedGpu> gpus = new TreeMap<>();
    private final Map<Integer, String> uuids = new TreeMap<>();
    private final List<String> report = new ArrayList<>();
    private final AtomicBoolean closed = new AtomicBoolean();
    private @Nullable PinnedMemory pinned;

    private CudaGpus() {}

    /**
     * Finds the GPUs and takes memory of them; the caller owns them. Never fails: a GPU that cannot be used is left
     * out, and the report says why.
     */
    public static CudaGpus open(GpuOptions options) {
        return open(GpuDiscovery.run(), options);
    }

    /** Takes memory of GPUs that were found. */
    static CudaGpus open(GpuDiscovery found, GpuOptions options) {
        CudaGpus result = new CudaGpus();
        result.report.add(found.report());
        found.driver().ifPresent(driver -> result.open(driver, found.gpus(), options));
        return result;
    }

    private void open(CudaDriver driver, List<Gpu> found, GpuOptions options) {
        for (Gpu gpu : found) {
            if (options.supports(gpu.major(), gpu.minor())) {
                use(driver, gpu, options.poolBytesOf(gpu.id()));
            } else {
                report.add("GPU " + gpu.id() + ": not used: compute capability " + gpu.computeCapability()
                        + " (expected: at least " + options.minMajor() + "." + options.minMinor()
                        + "; see --min-supported-compute-capability)");
            }
        }
        if (options.peerAccess()) {
            enablePeerAccess(driver);
        }
        if (!gpus.isEmpty() && options.pinnedBytes() > 0) {
            takePinned(options.pinnedBytes());
        }
    }

    private void use(CudaDriver driver, Gpu gpu, long poolBytes) {
        try {
            GpuContext context = new GpuContext(driver, gpu.id());
            gpus.put(gpu.id(), withMemory(context, poolBytes));
            uuids.put(gpu.id(), gpu.uuid());
        } catch (CudaException | GpuException | InferenceException e) {
            report.add("GPU " + gpu.id() + ": not used: " + e.getMessage());
        }
    }

    private UsedGpu withMemory(GpuContext context, long poolBytes) {
        try {
            return new UsedGpu(context, poolBytes);
        } catch (InferenceException e) {
            UsedGpu without = new UsedGpu(context, 0);
            report.add("GPU " + context.gpu() + ": no memory for tensors: " + e.getMessage() + " for " + poolBytes
                    + " bytes; see --cuda-memory-pool-byte-size");
            return without;
        }
    }

    private void enablePeerAccess(CudaDriver driver) {
        for (UsedGpu gpu : gpus.values()) {
            for (UsedGpu peer : gpus.values()) {
                int reader = gpu.context().gpu();
                int owner = peer.context().gpu();
                try {
                    if (reader != owner && driver.canAccessPeer(driver.device(reader), driver.device(owner))) {
                        gpu.context()
                                .run(it -> it.enablePeerAccess(peer.context().handle()));
                    }
                } catch (GpuException | CudaException e) {
                    report.add("GPU " + reader + ": no access to the memory of GPU " + owner + ": " + e.getMessage());
                }
            }
        }
    }

    private void takePinned(long byteSize) {
        try {
            pinned = new PinnedMemory(gpus.values().iterator().next().context(), byteSize);
        } catch (GpuException e) {
            report.add("no pinned memory: " + e.getMessage() + " for " + byteSize
                    + " bytes; see --pinned-memory-pool-byte-size");
        }
    }

    /** Returns a line for the log that names the GPUs, or the missing piece, and one line for each problem. */
    public List<String> report() {
        return List.copyOf(report);
    }

    @Override
    public List<Integer> numbers() {
        return List.copyOf(gpus.keySet());
    }

    @Override
    public Optional<String> uuid(int gpu) {
        return Optional.ofNullable(uuids.get(gpu));
    }

    @Override
    public Optional<DeviceMemory> memory(MemoryPlace place) {
        UsedGpu gpu = place.kind() == MemoryPlace.Kind.GPU && !closed.get() ? gpus.get(place.deviceId()) : null;
        return gpu == null ? Optional.empty() : Optional.of(gpu.memory());
    }

    @Override
    public Optional<TensorBuffer> allocatePinned(long byteSize) {
        PinnedMemory memory = pinned;
        return memory == null || closed.get() ? Optional.empty() : memory.allocate(byteSize);
    }

    @Override
    public Optional<DeviceMemory.Use> pinnedUse() {
        return Optional.ofNullable(pinned).map(PinnedMemory::use);
    }

    @Override
    public Opened open(ByteBuffer handle, int gpu, long byteSize) {
        if (closed.get()) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "GPUs: closed");
        }
        UsedGpu used = gpus.get(gpu);
        if (used == null) {
            throw new IllegalArgumentException("gpu: " + gpu + " (expected: one of " + numbers() + ")");
        }
        return used.open(handle, byteSize);
    }

    /** Asks all GPUs whether they work, at once. */
    void check() {
        gpus.values().forEach(UsedGpu::check);
    }

    @Override
    public Optional<String> failure() {
        for (UsedGpu gpu : gpus.values()) {
            Optional<String> failure = gpu.memory().failure();
            if (failure.isPresent()) {
                return failure;
            }
        }
        return Optional.empty();
    }

    /** Frees the memory; memory that is still in use, as after an abandoned request, ends with the process. */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        PinnedMemory memory = pinned;
        if (memory != null && memory.bytesInUse() == 0) {
            memory.close();
        }
        gpus.values().forEach(UsedGpu::close);
    }
}
