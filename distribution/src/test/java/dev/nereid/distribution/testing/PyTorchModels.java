package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Models of TorchScript that PyTorch compiles and writes, in a process of its own: a process can have one copy of its
 * native libraries only.
 */
public final class PyTorchModels {
    private static final String MAKER = "dev.nereid.backend.pytorch.MakeModels";
    private static final long TIMEOUT_MINUTES = 5;

    private PyTorchModels() {}

    /** Writes models without configurations into a new directory. Skips the test on other platforms. */
    public static Path make(Path directory) throws IOException, InterruptedException {
        assumeTrue(
                System.getProperty("os.name").equals("Linux")
                        && System.getProperty("os.arch").equals("amd64"),
                "the libraries of PyTorch are for Linux on x86-64");
        Files.createDirectories(directory);
        Path plugin = plugin();
        List<String> classPath = new ArrayList<>(List.of(TestPaths.checkout()
                .resolve("backend-pytorch/target/test-classes")
                .toAbsolutePath()
                .toString()));
        classPath.addAll(jars(plugin, ""));
        classPath.addAll(jars(TestPaths.home().resolve("lib"), "nereid-backend-spi"));
        Path log = directory.resolve("make.log");
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-cp",
                        String.join(File.pathSeparator, classPath),
                        MAKER,
                        directory.toAbsolutePath().toString(),
                        plugin.toString(),
                        TestPaths.checkout()
                                .resolve("distribution/target/pytorch-cache")
                                .toAbsolutePath()
                                .toString())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        if (!process.waitFor(TIMEOUT_MINUTES, TimeUnit.MINUTES)) {
            process.destroyForcibly();
        }
        assertThat(process.waitFor()).as(() -> text(log)).isZero();
        Files.delete(log);
        Files.delete(directory.resolve("made"));
        return directory;
    }

    /** Returns the directory of the installed plugin. */
    public static Path plugin() {
        return TestPaths.home().resolve("plugins/pytorch").toAbsolutePath();
    }

    /** Returns the directories from which a process has mapped PyTorch. */
    public static List<Path> mapped(String process) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc", process, "maps"))) {
            return lines.filter(line -> line.endsWith("/libtorch_cpu.so"))
                    .map(line -> Path.of(line.substring(line.indexOf('/'))).resolveSibling(""))
                    .distinct()
                    .toList();
        }
    }

    private static List<String> jars(Path directory, String prefix) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.getFileName().toString().endsWith(".jar"))
                    .filter(file -> file.getFileName().toString().startsWith(prefix))
                    .map(file -> file.toAbsolutePath().toString())
                    .sorted()
                    .toList();
        }
    }

    private static String text(Path log) {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
