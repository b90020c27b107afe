package dev.nereid.cuda;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The GPUs of this machine, or why there is none. Immutable.
 *
 * @param gpus the GPUs in the order of their numbers; empty if none can be used
 * @param report one line for the log: the GPUs, or the missing piece
 * @param driver the driver, initialized; empty if there is no GPU
 */
public record GpuDiscovery(List<Gpu> gpus, String report, Optional<CudaDriver> driver) {
    /** CUDA 11.4, the first with all functions in use. */
    private static final int OLDEST_VERSION = 11040;

    private static final String NONE = "no GPU: ";

    public GpuDiscovery {
        gpus = List.copyOf(gpus);
    }

    /**
     * Opens the driver and asks it for the GPUs. Where there is a driver, it is initialized, which takes up to some 200
     * ms. Never fails: whatever is wrong is in the report.
     */
    public static GpuDiscovery run() {
        return run(() -> new LibCuda(LibCuda.NAME));
    }

    static GpuDiscovery run(DriverSource source) {
        try {
            return ask(source.open());
        } catch (IOException e) {
            return none("CUDA driver: " + e.getMessage());
        } catch (CudaException e) {
            return none("CUDA driver: " + e.getMessage());
        }
    }

    private static GpuDiscovery ask(CudaDriver driver) {
        int version = driver.version();
        if (version < OLDEST_VERSION) {
            return none("the driver supports CUDA " + text(version) + " (expected: at least " + text(OLDEST_VERSION)
                    + "): install a newer driver");
        }
        driver.init();
        List<Gpu> gpus = new ArrayList<>();
        StringBuilder leftOut = new StringBuilder();
        int count = driver.deviceCount();
        for (int id = 0; id < count; id++) {
            try {
                gpus.add(describe(driver, id));
            } catch (CudaException e) {
                leftOut.append("; GPU ").append(id).append(": not used: ").append(e.getMessage());
            }
        }
        return gpus.isEmpty()
                ? none("the CUDA driver sees no device" + leftOut)
                : new GpuDiscovery(gpus, report(version, gpus) + leftOut, Optional.of(driver));
    }

    private static Gpu describe(CudaDriver driver, int id) {
        int device = driver.device(id);
        return new Gpu(
                id,
                driver.name(device),
                driver.uuid(device),
                driver.attribute(CudaDriver.COMPUTE_CAPABILITY_MAJOR, device),
                driver.attribute(CudaDriver.COMPUTE_CAPABILITY_MINOR, device),
                driver.totalMemory(device));
    }

    private static String report(int version, List<Gpu> gpus) {
        return gpus.stream()
                .map(gpu -> "GPU %d: %s, %s, compute capability %s, %d MiB"
                        .formatted(gpu.id(), gpu.name(), gpu.uuid(), gpu.computeCapability(), gpu.memoryBytes() >> 20))
                .collect(Collectors.joining("; ", "", "; the driver supports CUDA " + text(version)));
    }

    private static GpuDiscovery none(String reason) {
        return new GpuDiscovery(List.of(), NONE + reason, Optional.empty());
    }

    private static String text(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }

    /** Opens a driver. */
    @FunctionalInterface
    interface DriverSource {
        /** Opens it, or fails with the reason. */
        CudaDriver open() throws IOException;
    }
}
