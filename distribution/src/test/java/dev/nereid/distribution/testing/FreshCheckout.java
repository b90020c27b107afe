package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Copies a checkout, without anything that was built in it. For other modules too. */
public final class FreshCheckout {
    private FreshCheckout() {}

    /** Copies the current files, uncommitted changes included, to a new directory. Skips the test if there is no git. */
    public static void copyTo(Path directory) throws IOException, InterruptedException {
        assumeTrue(Files.exists(InstalledServer.CHECKOUT.resolve(".git")), "needs a checkout of git");
        for (String name : files()) {
            Path source = InstalledServer.CHECKOUT.resolve(name);
            if (Files.isRegularFile(source)) {
                Path target = directory.resolve(name);
                Files.createDirectories(target.getParent());
                Files.copy(source, target);
                assertThat(target.toFile().setExecutable(Files.isExecutable(source)))
                        .isTrue();
            }
        }
    }

    private static List<String> files() throws IOException, InterruptedException {
        Process git = new ProcessBuilder("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
                .directory(InstalledServer.CHECKOUT.toFile())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String names = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(git.waitFor()).isZero();
        return Stream.of(names.split("\0", -1)).filter(name -> !name.isEmpty()).toList();
    }
}
