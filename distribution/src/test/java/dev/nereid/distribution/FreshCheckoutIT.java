package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.FreshCheckout;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The command in a fresh checkout, in which nothing is built yet. */
@Tag("slow")
final class FreshCheckoutIT {
    /** A build beside other builds. */
    private static final long TIMEOUT_MINUTES = 10;

    @TempDir
    private Path directory;

    @Test
    void buildsItselfAndServes() throws IOException, InterruptedException {
        Path fresh = directory.resolve("nereid");
        FreshCheckout.copyTo(fresh);

        Result result = run(fresh, "./nereid", "--version");

        assertThat(result.status()).as(result.text()).isZero();
        assertThat(result.text()).containsPattern("nereid \\d+\\.\\d+\\.\\d+\\S*\ncommit: unknown\n");
        assertThat(fresh.resolve("examples/plugins")).isDirectoryContaining("glob:**/identity*");
    }

    private Result run(Path place, String... command) throws IOException, InterruptedException {
        Path output = directory.resolve("output-" + command[0].replaceAll("\\W", ""));
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(place.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile());
        // The libraries are those of the build that this test is part of.
        builder.environment().put("MAVEN_ARGS", "-o");
        Process process = builder.start();
        if (!process.waitFor(TIMEOUT_MINUTES, TimeUnit.MINUTES)) {
            process.destroyForcibly();
        }
        return new Result(process.waitFor(), Files.readString(output, StandardCharsets.UTF_8));
    }

    private record Result(int status, String text) {}
}
