package dev.nereid.api.file;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Paths that lead out of a directory, and what is no file. */
@Timeout(30)
final class ContainedPathTest {
    @TempDir
    private Path root;

    private Path inside;

    @BeforeEach
    void setUp() throws IOException {
        inside = Files.createDirectories(root.resolve("model/sub")).getParent();
        Files.writeString(root.resolve("secret"), "outside");
        Files.writeString(inside.resolve("file"), "inside");
        Files.createSymbolicLink(inside.resolve("out"), root.resolve("secret"));
        Files.createSymbolicLink(inside.resolve("up"), root);
        Files.createSymbolicLink(inside.resolve("in"), inside.resolve("file"));
        Files.createSymbolicLink(inside.resolve("device"), Path.of("/dev/zero"));
        Files.createSymbolicLink(inside.resolve("dangling"), inside.resolve("nowhere"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "..",
                ".",
                "",
                "../secret",
                "sub/../../secret",
                "sub/../file",
                "/etc/passwd",
                "//file",
                "a\\..\\b",
                "a\0b",
                "./file",
                "sub/.",
                "/"
            })
    void refusesTexts(String path) {
        assertThatThrownBy(() -> ContainedPath.resolve("test", inside, path))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageStartingWith("test: '");
        assertThatThrownBy(() -> ContainedPath.file("test", inside, path)).isInstanceOf(InferenceException.class);
    }

    /** Percent signs are characters like others: who decodes them has done so before. */
    @ParameterizedTest
    @ValueSource(strings = {"%2e%2e/secret", "%2e%2e%2fsecret", "..%2fsecret", "...", "..file"})
    void takesEncodedTextsLiterally(String path) {
        assertThat(ContainedPath.resolve("test", inside, path)).isEqualTo(inside.resolve(path));
        assertThatThrownBy(() -> ContainedPath.file("test", inside, path))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
    }

    @ParameterizedTest
    @ValueSource(strings = {"out", "up/secret", "device"})
    void refusesLinksThatLeave(String path) {
        assertThatThrownBy(() -> ContainedPath.file("test", inside, path))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("without '..' and links that leave it");
    }

    @Test
    void findsFilesAndLinksThatStay() throws IOException {
        assertThat(Files.readString(ContainedPath.file("test", inside, "file"))).isEqualTo("inside");
        assertThat(Files.readString(ContainedPath.file("test", inside, "in"))).isEqualTo("inside");
        assertThatThrownBy(() -> ContainedPath.file("test", inside, "dangling"))
                .hasMessage("test: 'dangling' (expected: an existing file)");
    }

    @Test
    void findsLinksThatLeaveAtAnyDepth() throws IOException {
        Path tree = Files.createDirectories(inside.resolve("tree/deep/deeper"));
        Files.createSymbolicLink(tree.resolve("file"), inside.resolve("file"));
        Files.createSymbolicLink(tree.resolve("loop"), inside.resolve("tree"));
        ContainedPath.tree("test", inside, inside.resolve("tree"));

        Files.createSymbolicLink(inside.resolve("sub/secret"), root.resolve("secret"));
        Files.createSymbolicLink(tree.resolve("sub"), inside.resolve("sub"));
        assertThatThrownBy(() -> ContainedPath.tree("test", inside, inside.resolve("tree")))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage(
                        "test: 'tree/deep/deeper/sub/secret' (expected: a path below its directory, without '..' and"
                                + " links that leave it): copy what the link leads to, or mount it below the directory");
        assertThatThrownBy(() -> ContainedPath.tree("test", inside, inside.resolve("up")))
                .hasMessageStartingWith("test: 'up' (expected: a path below its directory");
    }

    /** The open of a pipe would wait for its writer. */
    @Test
    void refusesDirectoriesAndPipes() throws Exception {
        new ProcessBuilder("mkfifo", inside.resolve("pipe").toString()).start().waitFor();

        for (String path : new String[] {"sub", "pipe"}) {
            assertThatThrownBy(() -> ContainedPath.file("test", inside, path))
                    .hasMessage("test: '" + path + "' (expected: a regular file)");
        }
    }
}
