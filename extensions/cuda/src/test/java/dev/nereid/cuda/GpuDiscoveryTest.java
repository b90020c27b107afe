package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests of what the server learns about the GPUs of its machine. */
final class GpuDiscoveryTest {
    @TempDir
    private Path directory;

    @Test
    void describesEachGpu() throws IOException, InterruptedException {
        GpuDiscovery discovery = discover("DEVICES=2");

        assertThat(discovery.gpus())
                .containsExactly(
                        new Gpu(0, "Stand-in", "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00", 9, 0, 80L << 30),
                        new Gpu(1, "Stand-in", "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01", 9, 1, 80L << 30));
        assertThat(discovery.report())
                .isEqualTo("GPU 0: Stand-in, GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae00, compute capability 9.0,"
                        + " 81920 MiB; GPU 1: Stand-in, GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae01, compute"
                        + " capability 9.1, 81920 MiB; the driver supports CUDA 12.4");
    }

    @Test
    void findsNoneWithoutADriver() {
        String missing = directory.resolve("libcuda.so.1").toString();

        GpuDiscovery discovery = GpuDiscovery.run(() -> new LibCuda(missing));

        assertThat(discovery.gpus()).isEmpty();
        assertThat(discovery.report())
                .isEqualTo("no GPU: CUDA driver: " + missing
                        + ": cannot open shared object file: No such file or directory");
    }

    @Test
    void findsNoneWithoutADevice() throws IOException, InterruptedException {
        GpuDiscovery discovery = discover("DEVICES=0");

        assertThat(discovery.gpus()).isEmpty();
        assertThat(discovery.report()).isEqualTo("no GPU: CUDA driver: cuInit: 100 CUDA_ERROR_NO_DEVICE");
    }

    @Test
    void findsNoneWithAnOldDriver() throws IOException, InterruptedException {
        GpuDiscovery discovery = discover("VERSION=11030");

        assertThat(discovery.gpus()).isEmpty();
        assertThat(discovery.report())
                .isEqualTo("no GPU: the driver supports CUDA 11.3 (expected: at least 11.4): install a newer driver");
    }

    @Test
    void leavesOutAGpuThatDoesNotAnswer() {
        FakeCudaDriver fake = new FakeCudaDriver();
        CudaDriver driver = (CudaDriver) Proxy.newProxyInstance(
                CudaDriver.class.getClassLoader(), new Class<?>[] {CudaDriver.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("deviceCount")) {
                        return 3;
                    }
                    if (method.getName().equals("name") && arguments[0].equals(1)) {
                        throw new CudaException("cuDeviceGetName", 46, "CUDA_ERROR_DEVICE_UNAVAILABLE");
                    }
                    return method.invoke(fake, arguments);
                });

        GpuDiscovery discovery = GpuDiscovery.run(() -> driver);

        assertThat(discovery.gpus()).extracting(Gpu::id).containsExactly(0, 2);
        assertThat(discovery.report()).endsWith("; GPU 1: not used: cuDeviceGetName: 46 CUDA_ERROR_DEVICE_UNAVAILABLE");
    }

    private GpuDiscovery discover(String definition) throws IOException, InterruptedException {
        String library = StandInLibrary.cuda(directory, definition).toString();
        return GpuDiscovery.run(() -> new LibCuda(library));
    }
}
