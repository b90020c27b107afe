package dev.nereid.compatibility;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs programs of the system. Stateless. */
final class Program {
    private static final long TIMEOUT_SECONDS = 120;

    private Program() {}

    /** Skips the test unless a command ends well. */
    static void assumeRuns(String... command) {
        boolean runs;
        try {
            runs = run(Map.of(), List.of(command)).status() == 0;
        } catch (IOException e) {
            runs = false;
        }
        assumeTrue(runs, () -> "not installed: " + String.join(" ", command));
    }

    /** Runs a command to its end, and returns its exit status and all that it wrote. */
    static Result run(Map<String, String> environment, List<String> command) throws IOException {
        Path out = Files.createTempFile("nereid-", ".out");
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
            builder.environment().putAll(environment);
            Process process = builder.start();
            process.getOutputStream().close();
            boolean ended = await(process);
            String text = Files.readString(out, StandardCharsets.UTF_8);
            if (!ended) {
                throw new AssertionError(command + ": still running after " + TIMEOUT_SECONDS + " s: " + text);
            }
            return new Result(process.exitValue(), text);
        } finally {
            Files.delete(out);
        }
    }

    private static boolean await(Process process) {
        try {
            return process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            process.destroyForcibly();
        }
    }

    /**
     * The result of a program.
     *
     * @param status its exit status
     * @param out its standard output and standard error
     */
    record Result(int status, String out) {}
}
