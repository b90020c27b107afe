package dev.nereid.backend.onnx;

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
    void holdsTheBackendAndOnnxRuntimeAndNothingElse() throws IOException {
        try (Stream<Path> files = Files.list(DIRECTORY)) {
            List<String> names = files.map(file -> file.getFileName().toString())
                    .map(name -> name.replaceAll("-\\d.*\\.jar$", ".jar"))
                    .toList();

            assertThat(names)
                    .containsExactlyInAnyOrder(
                            "nereid-backend-onnx.jar",
                            "nereid-backend-native.jar",
                            "onnxruntime.jar",
                            "sbom.cdx.json",
                            "THIRD-PARTY.txt");
        }
    }

    @Test
    void namesItsProviderAndTheVersionOfTheContract() throws IOException {
        try (Stream<Path> files = Files.list(DIRECTORY);
                JarFile jar = new JarFile(
                        files.filter(file -> file.getFileName().toString().startsWith("nereid-backend-onnx"))
                                .findFirst()
                                .orElseThrow()
                                .toFile())) {
            assertThat(jar.getManifest().getMainAttributes().getValue("Backend-Spi-Version"))
                    .matches("\\d+\\.\\d+");
            assertThat(jar.getEntry("META-INF/services/dev.nereid.spi.BackendProvider"))
                    .isNotNull();
            assertThat(jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class")))
                    .allMatch(name -> name.startsWith("dev/nereid/backend/onnx/"));
        }
    }
}
