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
import java.util.List;
import java.util.Map;

/**
 * Checks a machine with a GPU, one line for each check. Exits with 0 if none failed, with 2 if there is no GPU.
 *
 * <p>Arguments: the installed server, the directory with the plugin of kernels, the seconds of a measurement. Properties:
 * {@code gpu-check.tensorrt}, a directory with the plugins {@code tensorrt} and {@code onnx}; {@code gpu-check.onnx}, one with
 * the plugin {@code onnxruntime-gpu}; {@code gpu-check.model}, the model for both.
 */
public final class GpuCheck {
    private static final long PINNED_BYTES = 64L << 20;
    private static final int NO_GPU = 2;
    /** A property: {@code libraries} leaves out what needs none. */
    private static final String PART = "gpu-check.part";

    private static final int ARGUMENTS = 3;

    private GpuCheck() {}

    public static void main(String... arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals(ClientMemory.ARGUMENT)) {
            ClientMemory.run(new InputStreamReader(System.in, StandardCharsets.UTF_8), System.out);
            return;
        }
        if (arguments.length != ARGUMENTS) {
            System.err.println("gpu-check: " + arguments.length + " arguments (expected: server, plugins, seconds)");
            System.exit(1);
        }
        System.exit(check(List.of(arguments), System.out));
    }

    private static int check(List<String> arguments, PrintStream out) throws Exception {
        Path home = Path.of(arguments.get(0));
        Duration time = Duration.ofSeconds(Integer.parseInt(arguments.get(2)));
        String classPath = System.getProperty("java.class.path");
        CheckList list = new CheckList(out);
        try (CudaGpus gpus = CudaGpus.open(new GpuOptions(PINNED_BYTES, Map.of(), 6, 0, true))) {
            gpus.report().forEach(out::println);
            if (gpus.numbers().isEmpty()) {
                return NO_GPU;
            }
            GpuContext gpu = GpuContext.open(0);
            Kernels kernels = Kernels.load(gpu);
            Path directory = Files.createTempDirectory("gpu-check");
            if (!System.getProperty(PART, "").equals("libraries")) {
                list.part("Device layer");
                new DeviceChecks(gpus, gpu, kernels).run(list);
                list.part("Memory of other processes");
                new SharingChecks(gpus, classPath).run(list);
                list.part("Server");
                new ServingChecks(home, Path.of(arguments.get(1)), directory, gpu, kernels, time, classPath).run(list);
            }
            gpu.release(driver -> driver.unloadModule(kernels.module()));
            Path model = Path.of(System.getProperty("gpu-check.model", ""));
            String tensorRt = System.getProperty("gpu-check.tensorrt", "");
            if (!tensorRt.isEmpty()) {
                list.part("TensorRT");
                new TensorRtChecks(home, Path.of(tensorRt), model, directory, gpu, time).run(list);
            }
            String onnx = System.getProperty("gpu-check.onnx", "");
            if (!onnx.isEmpty()) {
                list.part("ONNX Runtime");
                new OnnxChecks(home, Path.of(onnx), model, directory).run(list);
            }
            return list.end() ? 0 : 1;
        } catch (GpuException e) {
            out.println("gpu-check: " + e.getMessage());
            return 1;
        }
    }
}
