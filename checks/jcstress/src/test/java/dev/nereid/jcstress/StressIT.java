package dev.nereid.jcstress;

import static java.util.concurrent.TimeUnit.MINUTES;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Runs all stress tests of this module, each for a few seconds, in separate processes. */
final class StressIT {
    private static final Path TARGET = Path.of("target");
    /**
     * One set of flags of the virtual machine, and all actors compiled alike: the variants that are left out test the
     * virtual machine itself.
     */
    private static final List<String> ARGUMENTS =
            List.of("-m", "quick", "-jvmArgs", "-XX:+UseParallelGC", "-sc", "false", "-iters", "4", "-r", "jcstress");

    @Test
    void findsNothingForbidden() throws IOException, InterruptedException {
        Path log = TARGET.resolve("jcstress.log");
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "org.openjdk.jcstress.Main"));
        command.addAll(ARGUMENTS);
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(TARGET.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile());

        Process process = builder.start();
        boolean ended = process.waitFor(5, MINUTES);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();

        String output = Files.readString(log);
        assertThat(ended).as(output).isTrue();
        assertThat(process.exitValue()).as(output).isZero();
        assertThat(output)
                .contains("Failed tests: No matches", "Error tests: No matches", "All remaining tests: " + tests());
    }

    /** Returns the line of the report that counts all tests which the compiler found. */
    private static String tests() throws IOException {
        try (Stream<String> lines = Files.lines(TARGET.resolve("test-classes/META-INF/TestList"))) {
            long count = lines.filter(line -> !line.isBlank()).count();
            assertThat(count).isPositive();
            return count + " matching test results";
        }
    }
}
