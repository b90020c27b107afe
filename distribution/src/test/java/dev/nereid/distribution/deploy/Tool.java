package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs programs of the machine. Static functions only. */
final class Tool {
    private static final long TIMEOUT_SECONDS = 60;

    private Tool() {}

    /** Skips the test unless a program is installed; in continuous integration, which installs it, the test fails. */
    static void require(String program) throws IOException, InterruptedException {
        boolean isInstalled = run(Path.of("/"), "which", program).status() == 0;
        if (System.getenv("CI") == null) {
            assumeTrue(isInstalled, "not installed: " + program);
        }
        assertThat(isInstalled).as("installed: " + program).isTrue();
    }

    /** Runs a program in a directory to its end. */
    static Result run(Path directory, String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(List.of(command))
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as(out).isTrue();
        return new Result(process.exitValue(), out);
    }

    /** Runs a program that must succeed, and returns its output of both kinds. */
    static String succeed(Path directory, String... command) throws IOException, InterruptedException {
        Result result = run(directory, command);
        assertThat(result.status()).as(result.out()).isZero();
        return result.out();
    }

    /** Skips the test unless this user may mount file systems in a namespace of its own. */
    static void requireMounts() throws IOException, InterruptedException {
        boolean isPermitted = run(Path.of("/"), "unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
                        .status()
                == 0;
        assumeTrue(isPermitted, "mounts in a namespace: not permitted to this user");
    }

    /**
     * The end of a program.
     *
     * @param status its exit status
     * @param out its output of both kinds
     */
    record Result(int status, String out) {}
}
