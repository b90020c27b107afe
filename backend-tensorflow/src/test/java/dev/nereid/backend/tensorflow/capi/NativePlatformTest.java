package dev.nereid.backend.tensorflow.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.natives.HostMachine;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The search for the library of a platform whose library this process never has mapped. */
class NativePlatformTest {
    private static final String PREFIX = "org/tensorflow/internal/c_api/macosx-arm64/";
    private static final String LIBRARY = "libtensorflow_cc.2.dylib";

    private final NativePlatform platform = NativePlatform.of(new HostMachine("Darwin", "arm64"));

    @TempDir
    private Path directory;

    private Path find() throws IOException {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            return platform.library(directory, empty, directory.resolve("cache"));
        }
    }

    @Test
    void unpacksTheLibrariesOfTheArtifactButThatOfTheJavaApi() throws IOException {
        Path natives = Files.createDirectory(directory.resolve("natives"));
        try (OutputStream out = Files.newOutputStream(natives.resolve("tensorflow-core-native.jar"));
                ZipOutputStream zip = new ZipOutputStream(out)) {
            for (String name :
                    List.of(LIBRARY, "libtensorflow_framework.2.dylib", "libjnitensorflow.dylib", "NOTICE")) {
                zip.putNextEntry(new ZipEntry(PREFIX + name));
                zip.write(name.getBytes(StandardCharsets.UTF_8));
                zip.closeEntry();
            }
        }

        Path library = find();

        assertThat(library).hasFileName(LIBRARY).hasContent(LIBRARY);
        try (Stream<Path> files = Files.list(library.resolveSibling(""))) {
            assertThat(files)
                    .containsExactlyInAnyOrder(library, library.resolveSibling("libtensorflow_framework.2.dylib"));
        }
    }

    @Test
    void namesTheArtifactThatIsMissing() {
        assertThatThrownBy(this::find)
                .isInstanceOf(IOException.class)
                .hasMessage(LIBRARY + ": missing (expected: tensorflow-core-native-…-macosx-arm64.jar in the directory"
                        + " natives of the plugin)");
    }
}
