package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Checks the directory of the packaged plugin. */
class PluginDirectoryIT {
    private static final Path DIRECTORY = Path.of("target", "plugin");

    @Test
    void holdsTheBackendItsMessagesAndThePackedLibraryApart() throws IOException {
        assertThat(names(DIRECTORY))
                .containsExactlyInAnyOrder(
                        "nereid-backend-tensorflow.jar",
                        "nereid-backend-native.jar",
                        "tensorflow-core-native.jar",
                        "protobuf-java.jar",
                        "natives");
        assertThat(names(DIRECTORY.resolve("natives"))).containsExactly("tensorflow-core-native.jar");
        try (Stream<Path> files = Files.list(DIRECTORY.resolve("natives"));
                JarFile natives = new JarFile(files.findFirst().orElseThrow().toFile())) {
            assertThat(natives.stream().filter(entry -> entry.getName().contains("/libtensorflow_cc.")))
                    .hasSize(1);
        }
    }

    private static List<String> names(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(
                            file -> Files.isDirectory(file) || file.toString().endsWith(".jar")) // else notices
                    .map(file -> file.getFileName().toString())
                    .map(name -> name.replaceAll("-\\d.*\\.jar$", ".jar"))
                    .toList();
        }
    }

    @Test
    void namesItsProviderAndTheVersionOfTheContract() throws IOException {
        try (Stream<Path> files = Files.list(DIRECTORY);
                JarFile jar = new JarFile(
                        files.filter(file -> file.getFileName().toString().startsWith("nereid-backend-tensorflow"))
                                .findFirst()
                                .orElseThrow()
                                .toFile())) {
            assertThat(jar.getManifest().getMainAttributes().getValue("Backend-Spi-Version"))
                    .matches("\\d+\\.\\d+");
            assertThat(jar.getEntry("META-INF/services/dev.nereid.spi.BackendProvider"))
                    .isNotNull();
            assertThat(jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class")))
                    .allMatch(name -> name.startsWith("dev/nereid/backend/tensorflow/"));
        }
    }
}
