package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Models that TensorFlow Java trains and writes, in a process of its own: its protobuf is older than the server's, and a
 * process can have one copy of its native library only.
 */
public final class TensorFlowModels {
    private static final String MAKER = "dev.nereid.backend.tensorflow.MakeModels";
    private static final long TIMEOUT_MINUTES = 5;

    private TensorFlowModels() {}

    /** Writes a repository of models without configurations. */
    public static Path make(Path directory) throws IOException, InterruptedException {
        Path module = TestPaths.checkout().resolve("backend-tensorflow").toAbsolutePath();
        Path target = module.resolve("target");
        List<String> classPath =
                new ArrayList<>(List.of(target.resolve("test-classes").toString()));
        for (String libraries : List.of("plugin", "plugin/natives", "test-libraries")) {
            classPath.addAll(jars(target.resolve(libraries)));
        }
        Path log = directory.resolve("make.log");
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-cp",
                        String.join(java.io.File.pathSeparator, classPath),
                        MAKER,
                        directory.toAbsolutePath().toString(),
                        TestPaths.checkout()
                                .resolve("examples/training/digits_train.csv")
                                .toAbsolutePath()
                                .toString())
                .directory(module.toFile())
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

    private static List<String> jars(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(Path::toString)
                    .filter(name -> name.endsWith(".jar"))
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
