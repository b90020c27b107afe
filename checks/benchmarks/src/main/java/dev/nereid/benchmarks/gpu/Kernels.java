package dev.nereid.benchmarks.gpu;

import dev.nereid.cuda.GpuContext;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * The kernels of {@code kernels.ptx}, loaded. Immutable.
 *
 * @param module what they were loaded as
 * @param increment writes the input plus 1
 * @param copy writes the input
 */
record Kernels(long module, long increment, long copy) {
    static String source() throws IOException {
        try (InputStream resource = Kernels.class.getResourceAsStream("kernels.ptx")) {
            return new String(Objects.requireNonNull(resource).readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    static Kernels load(GpuContext gpu) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            long source = arena.allocateFrom(source()).address();
            long module = gpu.call(driver -> driver.loadModule(source));
            return new Kernels(
                    module,
                    gpu.call(driver -> driver.function(module, "increment")),
                    gpu.call(driver -> driver.function(module, "copy")));
        }
    }
}
