package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A thousand random changes of a file, half of them with right checksums: none ends the process. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
class BrokenFilesIT {
    private static final int FILES = 1000;

    @TempDir
    private Path directory;

    @Test
    void randomChanges() throws IOException, InterruptedException {
        List<String> lines = load(0, FILES);

        assertThat(lines).hasSize(2 * FILES);
        assertThat(lines).filteredOn(line -> line.contains(" executed")).isNotEmpty();
        assertThat(lines)
                .filteredOn(line -> line.contains(" refused "))
                .hasSizeGreaterThan(FILES / 2)
                .allMatch(line -> !line.contains("frame #") && !line.contains("Exception raised from"));
    }

    /** Changes that have ended a process before. */
    @Test
    void shortRecords() throws IOException, InterruptedException {
        assertThat(load(10549, 10550)).last().asString().contains("10549 refused ");
    }

    private List<String> load(int from, int to) throws IOException, InterruptedException {
        Path log = directory.resolve("log");
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx256m",
                "-XX:-CreateCoredumpOnCrash",
                "-XX:ErrorFile=" + directory.resolve("error.log"),
                "-cp",
                System.getProperty("java.class.path"),
                ChangedFiles.class.getName(),
                directory.toString(),
                Integer.toString(from),
                Integer.toString(to)));
        Process process = new ProcessBuilder(command)
                .redirectOutput(log.toFile())
                .redirectError(directory.resolve("errors").toFile())
                .start();
        try {
            assertThat(process.waitFor(8, TimeUnit.MINUTES)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        List<String> lines = Files.readString(log, StandardCharsets.UTF_8)
                .lines()
                .filter(line -> !line.isEmpty() && Character.isDigit(line.charAt(0)))
                .toList();
        assertThat(process.exitValue())
                .as("end after: %s", lines.isEmpty() ? "nothing" : lines.getLast())
                .isZero();
        return lines;
    }
}
