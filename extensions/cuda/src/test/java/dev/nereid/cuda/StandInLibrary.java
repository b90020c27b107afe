package dev.nereid.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Compiles libraries in C that stand in for those of the driver. Stateless. */
final class StandInLibrary {
    private StandInLibrary() {}

    /**
     * Compiles the stand-in for {@code libcuda.so.1}; skips the test where there is no compiler.
     *
     * @param directory where the library is written
     * @param definitions macros, such as {@code DEVICES=0}
     * @return the library
     */
    static Path cuda(Path directory, String... definitions) throws IOException, InterruptedException {
        return compile(directory, "libcuda", definitions);
    }

    /** Compiles the stand-in for {@code libnvidia-ml.so.1} likewise. */
    static Path nvml(Path directory, String... definitions) throws IOException, InterruptedException {
        return compile(directory, "libnvidia-ml", definitions);
    }

    private static Path compile(Path directory, String name, String... definitions)
            throws IOException, InterruptedException {
        Path library = directory.resolve(name + ".so.1");
        Path source = directory.resolve(name + ".c");
        try (InputStream resource = StandInLibrary.class.getResourceAsStream(name + ".c")) {
            Files.write(source, Objects.requireNonNull(resource).readAllBytes());
        }
        List<String> command = new ArrayList<>(
                List.of("cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library.toString(), source.toString()));
        for (String definition : definitions) {
            command.add("-D" + definition);
        }
        Process compiler;
        try {
            compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
        } catch (IOException e) {
            assumeTrue(false, "no C compiler: " + e.getMessage());
            throw e;
        }
        String output = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(compiler.waitFor()).as(output).isZero();
        return library;
    }
}
