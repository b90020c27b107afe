package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** Models that PyTorch for Python writes, where that is installed. Static functions only. */
final class PythonModels {
    private static final Path PYTHON = Path.of("/usr/bin/python3");
    private static final Path SCRIPT = Path.of("src/test/python/models.py").toAbsolutePath();

    private PythonModels() {}

    /**
     * Runs the script that writes them; skips the test where PyTorch for Python is missing.
     *
     * @param marker the file that code in a pickle would create
     */
    static void write(Path directory, Path marker) throws IOException, InterruptedException {
        Assumptions.assumeTrue(
                Files.isExecutable(PYTHON)
                        && run(directory, List.of(PYTHON.toString(), "-c", "import torch, torchvision")) == 0,
                "python3-torch and python3-torchvision are not installed");
        int end =
                run(directory, List.of(PYTHON.toString(), SCRIPT.toString(), directory.toString(), marker.toString()));
        assertThat(end)
                .as(Files.readString(directory.resolve("log"), StandardCharsets.UTF_8))
                .isZero();
    }

    private static int run(Path directory, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("log").toFile())
                .start();
        if (!process.waitFor(5, TimeUnit.MINUTES)) {
            process.destroyForcibly();
            throw new AssertionError(command + ": no end");
        }
        return process.exitValue();
    }
}
