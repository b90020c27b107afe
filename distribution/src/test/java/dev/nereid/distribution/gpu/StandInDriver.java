package dev.nereid.distribution.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A library in C that stands in for the driver of two GPUs: their memory is that of the host, and kernels are computed
 * when they are launched. Static functions only.
 */
final class StandInDriver {
    private static final Path PLUGINS = InstalledServer.CHECKOUT.resolve("examples/gpu-plugins");
    private static final Path SOURCE =
            InstalledServer.CHECKOUT.resolve("extensions/cuda/src/test/resources/dev/nereid/cuda/libcuda.c");

    private StandInDriver() {}

    /** Compiles it to a file of a directory, and returns the file; skips the test where there is no compiler. */
    static Path compile(Path directory) throws IOException, InterruptedException {
        Path library = directory.resolve("libcuda.so.1");
        Process compiler;
        try {
            compiler = new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(), SOURCE.toString())
                    .redirectErrorStream(true)
                    .start();
        } catch (IOException e) {
            assumeTrue(false, "no C compiler: " + e.getMessage());
            throw e;
        }
        String output = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(compiler.waitFor()).as(output).isZero();
        return library;
    }

    /** Starts a server with the driver and the example {@code ptx}. */
    static InstalledServer serve(Path driver, Path models, String... flags) throws IOException {
        List<String> all = new ArrayList<>(List.of(flags));
        all.add("--backend-directory=" + PLUGINS);
        return InstalledServer.serve(environment(driver), models, all.toArray(String[]::new));
    }

    /** Returns the environment in which the dynamic linker finds the driver. */
    static Map<String, String> environment(Path driver) {
        return Map.of("LD_LIBRARY_PATH", String.valueOf(driver.getParent()));
    }
}
