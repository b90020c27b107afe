package dev.nereid.distribution.testing;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;

/** Paths of the assembled server, the checkout, and the shared files beside it. */
public final class TestPaths {
    private TestPaths() {}

    /** Returns the directory of the assembled server. */
    static Path home() {
        return Path.of(System.getProperty("nereid.home", "target/nereid"));
    }

    /** Returns the directory of this repository. */
    public static Path checkout() {
        return Path.of(System.getProperty("nereid.checkout", ".."));
    }

    /** Returns the plugin directories: the server's own, and those of the examples. */
    public static Path[] plugins() {
        return new Path[] {home().resolve("plugins"), checkout().resolve("examples/plugins")};
    }

    /** Returns a file or directory beside this repository, and skips the test if it does not exist. */
    public static Path shared(String name) {
        Path path = checkout().resolve("../shared").resolve(name).normalize();
        assumeTrue(Files.exists(path), () -> "shared/" + name + " is not there");
        return path;
    }
}
