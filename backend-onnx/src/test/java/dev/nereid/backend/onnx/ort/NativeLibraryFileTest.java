package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.natives.HostMachine;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryFileTest {
    private static final NativePlatform PLATFORM = NativePlatform.current();

    @TempDir
    Path directory;

    @Tag("slow")
    @Test
    void unpacksTheWholeLibraryAndNothingElse() throws IOException {
        Path library = unpack();

        try (InputStream expected = getClass().getClassLoader().getResourceAsStream(PLATFORM.resource())) {
            assertThat(library).hasBinaryContent(expected.readAllBytes());
        }
        assertThat(filesBelow(directory)).containsExactly(library);
    }

    @Test
    void takesTheFileThatIsThereAlready() throws IOException {
        Path first = unpack();
        FileTime longAgo = FileTime.fromMillis(0);
        Files.setLastModifiedTime(first, longAgo);

        Path second = unpack();

        assertThat(second).isEqualTo(first);
        assertThat(Files.getLastModifiedTime(second)).isEqualTo(longAgo);
    }

    @Test
    void replacesAFileThatWasCutShort() throws IOException {
        Path library = unpack();
        long size = Files.size(library);
        Files.write(library, new byte[] {1, 2, 3});

        unpack();

        assertThat(library).hasSize(size);
        assertThat(filesBelow(directory)).containsExactly(library);
    }

    @Test
    void keepsDifferentContentsApart() throws IOException {
        Path library = unpack();
        Path other = classPathWith("other content");

        try (URLClassLoader loader = new URLClassLoader(new URL[] {other.toUri().toURL()}, null)) {
            Path second = NativeLibraryFile.unpack(PLATFORM, loader, directory);

            assertThat(second).isNotEqualTo(library).hasContent("other content");
        }
    }

    @Test
    void putsTheLibrariesOfProvidersBesideTheLibraryThatOpensThem() throws IOException {
        NativePlatform platform = NativePlatform.of(new HostMachine("Linux", "x86_64"));
        Path root = Files.createTempDirectory(directory.getParent(), "classes");
        for (String name : List.of("", "_providers_shared", "_providers_cuda", "_providers_tensorrt", "4j_jni")) {
            write(root, platform, "libonnxruntime" + name + ".so", "content" + name);
        }

        try (URLClassLoader loader = new URLClassLoader(new URL[] {root.toUri().toURL()}, null)) {
            Path library = NativeLibraryFile.unpack(platform, loader, directory);

            assertThat(filesBelow(directory))
                    .containsExactlyInAnyOrder(
                            library,
                            library.resolveSibling("libonnxruntime_providers_shared.so"),
                            library.resolveSibling("libonnxruntime_providers_cuda.so"),
                            library.resolveSibling("libonnxruntime_providers_tensorrt.so"));
            assertThat(library.resolveSibling("libonnxruntime_providers_cuda.so"))
                    .hasContent("content_providers_cuda");
        }
    }

    @Test
    void replacesALibraryOfAProviderThatWasCutShort() throws IOException {
        NativePlatform platform = NativePlatform.of(new HostMachine("Linux", "x86_64"));
        Path root = Files.createTempDirectory(directory.getParent(), "classes");
        write(root, platform, "libonnxruntime.so", "library");
        write(root, platform, "libonnxruntime_providers_cuda.so", "provider");

        try (URLClassLoader loader = new URLClassLoader(new URL[] {root.toUri().toURL()}, null)) {
            Path library = NativeLibraryFile.unpack(platform, loader, directory);
            Path provider = library.resolveSibling("libonnxruntime_providers_cuda.so");
            Files.writeString(provider, "pro");

            NativeLibraryFile.unpack(platform, loader, directory);

            assertThat(provider).hasContent("provider");
        }
    }

    /** The artifact for the CPU on Windows has the library that providers share, and no provider. */
    @Test
    void leavesOutTheSharedLibraryWithoutAProvider() throws IOException {
        NativePlatform platform = NativePlatform.of(new HostMachine("Windows", "x86_64"));
        Path root = Files.createTempDirectory(directory.getParent(), "classes");
        write(root, platform, "onnxruntime.dll", "library");
        write(root, platform, "onnxruntime_providers_shared.dll", "shared");

        try (URLClassLoader loader = new URLClassLoader(new URL[] {root.toUri().toURL()}, null)) {
            assertThat(NativeLibraryFile.unpack(platform, loader, directory)).hasContent("library");
            assertThat(filesBelow(directory)).hasSize(1);
        }
    }

    private static void write(Path root, NativePlatform platform, String file, String content) throws IOException {
        Path resource = root.resolve(platform.resource(file));
        Files.createDirectories(resource.getParent());
        Files.writeString(resource, content);
    }

    @Test
    void reportsWhichLibraryIsMissing() throws IOException {
        try (URLClassLoader empty = new URLClassLoader(new URL[0], null)) {
            assertThatThrownBy(() -> NativeLibraryFile.unpack(PLATFORM, empty, directory))
                    .isInstanceOf(IOException.class)
                    .hasMessageStartingWith(PLATFORM.resource());
        }
    }

    private Path unpack() throws IOException {
        return NativeLibraryFile.unpack(PLATFORM, getClass().getClassLoader(), directory);
    }

    private Path classPathWith(String content) throws IOException {
        Path root = Files.createTempDirectory(directory.getParent(), "classes");
        Path resource = root.resolve(PLATFORM.resource());
        Files.createDirectories(resource.getParent());
        Files.writeString(resource, content);
        return root;
    }

    private static List<Path> filesBelow(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile).toList();
        }
    }
}
