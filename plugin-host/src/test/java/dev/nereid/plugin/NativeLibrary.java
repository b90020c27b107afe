package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * A library in C that counts, with its Java class {@code lib.Counter}. As many do, the class unpacks it to one path for all
 * processes of the user.
 */
final class NativeLibrary {
    private static final String SOURCE = """
            static int count;
            int Java_lib_Counter_next(void *env, void *type) { return ++count; }
            """;

    private static final String CLASS = """
            package lib;

            import java.io.InputStream;
            import java.nio.file.*;

            public final class Counter {
                static {
                    Path unpacked = Path.of("PATH");
                    try (InputStream in = Counter.class.getResourceAsStream("/native/libcounter.so")) {
                        if (!Files.exists(unpacked)) {
                            Files.copy(in, unpacked);
                        }
                    } catch (java.io.IOException e) {
                        throw new java.io.UncheckedIOException(e);
                    }
                    System.load(unpacked.toString());
                }

                public static native int next();
            }
            """;

    private NativeLibrary() {}

    /** Builds a jar with the class and the library. Skips the test without a compiler of C. */
    static PluginJar build(Path directory) {
        Path source = directory.resolve("counter.c");
        Path library = directory.resolve("libcounter.so");
        try {
            Files.writeString(source, SOURCE);
            Process compiler = start(List.of("cc", "-shared", "-fPIC", "-o", library.toString(), source.toString()));
            assertThat(compiler.waitFor()).isZero();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
        return PluginJar.of(
                        CLASS.replace("PATH", directory.resolve("unpacked.so").toString()))
                .spiVersion("")
                .file("native/libcounter.so", library);
    }

    private static Process start(List<String> command) {
        try {
            return new ProcessBuilder(command).inheritIO().start();
        } catch (IOException e) {
            assumeTrue(false, "no C compiler: cc");
            throw new UncheckedIOException(e);
        }
    }
}
