package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Whatever a process loads first, values of all types pass with their bits afterwards. */
@Timeout(value = 4, unit = TimeUnit.MINUTES)
class FirstLoadIT {
    @TempDir
    private Path directory;

    @Test
    void traceWithItsInputsIsTheFirst() throws IOException, InterruptedException {
        Path log = directory.resolve("log");
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-Xmx256m",
                        "-XX:-CreateCoredumpOnCrash",
                        "-XX:ErrorFile=" + directory.resolve("error.log"),
                        "-cp",
                        System.getProperty("java.class.path"),
                        FirstLoad.class.getName(),
                        Files.createDirectory(directory.resolve("models")).toString()))
                .redirectOutput(log.toFile())
                .redirectError(directory.resolve("errors").toFile())
                .start();
        try {
            assertThat(process.waitFor(3, TimeUnit.MINUTES)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(Files.readAllLines(log, StandardCharsets.UTF_8))
                .as("errors: %s", Files.readString(directory.resolve("errors"), StandardCharsets.UTF_8))
                .containsExactly(
                        "trace same",
                        "BOOL same",
                        "UINT8 same",
                        "INT8 same",
                        "INT16 same",
                        "INT32 same",
                        "INT64 same",
                        "FP16 same",
                        "FP32 same",
                        "FP64 same",
                        "BYTES same",
                        "BF16 same");
        assertThat(process.exitValue()).isZero();
    }
}
