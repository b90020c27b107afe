package dev.nereid.backend.tensorflow.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.natives.LibraryDirectory;
import dev.nereid.backend.natives.LoadedLibraries;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class OperatorDirectoryTest {
    private static final List<String> FILES = List.of("a.so", "b.so");

    @TempDir
    private Path cache;

    @TempDir
    private Path copies;

    private final Path origin = Path.of("/models/m/a.so");

    @BeforeEach
    void writeCopies() throws IOException {
        Files.writeString(copies.resolve("a.so"), "operations of " + copies);
        Files.writeString(copies.resolve("b.so"), "library");
        Files.writeString(copies.resolve("other"), "other");
    }

    private OperatorDirectory directory() throws IOException {
        return OperatorDirectory.of(copies.resolve("a.so"), origin);
    }

    @Test
    void holdsTheFilesOnce() throws IOException {
        Path written = directory().write(cache, copies, FILES, "a.so");

        assertThat(written).hasSameTextualContentAs(copies.resolve("a.so"));
        try (Stream<Path> files = Files.list(written.resolveSibling(""))) {
            assertThat(files).containsExactlyInAnyOrder(written, written.resolveSibling("b.so"));
        }
        assertThat(directory().write(cache, copies, FILES, "a.so")).isEqualTo(written);
        try (Stream<Path> directories = Files.list(written.resolveSibling("").resolveSibling(""))) {
            assertThat(directories).as("nothing partial").containsExactly(written.resolveSibling(""));
        }
    }

    @Test
    void isWrittenAgainIfItIsDamaged() throws IOException {
        Path written = directory().write(cache, copies, FILES, "a.so");
        Files.delete(written);
        Files.writeString(written, "damaged");

        assertThat(directory().write(cache, copies, FILES, "a.so")).isEqualTo(written);
        assertThat(written).hasSameTextualContentAs(copies.resolve("a.so"));
    }

    /** As another plugin of this process has loaded it, which is gone with its files. */
    @Test
    void isFoundWhileItIsMapped() throws IOException {
        assumeTrue(LoadedLibraries.isKnown(), "/proc/self/maps is not there");
        OperatorDirectory directory = directory();
        Path other = Files.writeString(copies.resolve("other.so"), "other operations of " + copies);
        assertThat(directory.sameContent()).isEmpty();
        assertThat(directory.sameOrigin()).isEmpty();
        Path written = directory.write(cache, copies, FILES, "a.so").toRealPath();
        try (Arena arena = Arena.ofConfined();
                FileChannel channel = FileChannel.open(written)) {
            channel.map(MapMode.READ_ONLY, 0, channel.size(), arena);
            LibraryDirectory.delete(written.resolveSibling(""));

            assertThat(directory.sameContent()).contains(written);
            assertThat(directory.sameOrigin()).contains(written);
            assertThat(OperatorDirectory.of(copies.resolve("a.so"), Path.of("/models/n/a.so"))
                            .sameContent())
                    .contains(written);
            assertThat(OperatorDirectory.of(other, origin).sameContent()).isEmpty();
            assertThat(OperatorDirectory.of(other, origin).sameOrigin()).contains(written);
        }
    }
}
