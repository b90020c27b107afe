package dev.nereid.benchmarks.gpu;

import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuException;
import dev.nereid.cuda.memory.CudaGpus;
import dev.nereid.cuda.memory.GpuOptions;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Checks a machine with a GPU, one line for each check. Exits with 0 if none failed, with 2 if there is no GPU.
 *
 * <p>Arguments: the installed server, the directory with the plugin of kernels, and the seconds of a measurement.
 */
public final class GpuCheck {
    private static final long PINNED_BYTES = 64L << 20;
    private static final int NO_GPU = 2;

    private GpuCheck() {}

    /** Runs the checks. */
    public static void main(String... arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals(ClientMemory.ARGUMENT)) {
            ClientMemory.run(new InputStreamReader(System.in, StandardCharsets.UTF_8), System.out);
            return;
        }
        if (arguments.length != 3) {
            System.err.println("gpu-check: " + arguments.length + " arguments (expected: server, plugins, seconds)");
            System.exit(1);
        }
        System.exit(check(
                Path.of(arguments[0]),
                Path.of(arguments[1]),
                Duration.ofSeconds(Integer.parseInt(arguments[2])),
                System.out));
    }

    private static int check(Path home, Path plugins, Duration time, PrintStream out) throws Exception {
        CheckList list = new CheckList(out);
        try (CudaGpus gpus = CudaGpus.open(new GpuOptions(PINNED_BYTES, Map.of(), 6, 0, true))) {
            gpus.report().forEach(out::println);
            if (gpus.numbers().isEmpty()) {
                return NO_GPU;
            }
            GpuContext gpu = GpuContext.open(0);
            Kernels kernels = Kernels.load(gpu);
            list.part("Device layer");
            new DeviceChecks(gpus, gpu, kernels).run(list);
            list.part("Memory of other processes");
            new SharingChecks(gpus).run(list);
            list.part("Server");
            Path directory = Files.createTempDirectory("gpu-check");
            new ServingChecks(home, plugins, directory, gpu, kernels, time).run(list);
            gpu.release(driver -> driver.unloadModule(kernels.module()));
            return list.end() ? 0 : 1;
        } catch (GpuException e) {
            out.println("gpu-check: " + e.getMessage());
            return 1;
        }
    }
}
