package dev.nereid.backend.tensorrt.presets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Libraries that are found by their names although the dynamic linker does not look where they lie. */
final class NamedLibraryTest {
    private static final String FIRST = "libnereid_test_resource_a.so.1.2.3";
    private static final String SECOND = "libnereid_test_resource_b.so.1.2.3";

    @TempDir
    private Path directory;

    @Test
    void areFoundByTheirNames() throws IOException, InterruptedException {
        Path libraries = Files.createDirectory(directory.resolve("ä libraries"));
        compile(libraries.resolve(FIRST));
        compile(libraries.resolve(SECOND));
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> LinkerLibrary.open(FIRST))
                .withMessageContaining("cannot open shared object file");

        NamedLibrary.load(List.of(libraries.resolve(FIRST), libraries.resolve(SECOND)), directory);

        assertThatNoException().isThrownBy(() -> LinkerLibrary.open(FIRST));
        assertThatNoException().isThrownBy(() -> LinkerLibrary.open(SECOND));
    }

    @Test
    void aFileThatIsNoLibraryIsNamed() throws IOException {
        Path missing = directory.resolve("libnereid_missing.so.1");
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> NamedLibrary.load(List.of(missing), directory))
                .withMessageContaining("libnereid_missing.so.1");
        Path empty = Files.createFile(directory.resolve("libnereid_empty.so.1"));
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> NamedLibrary.load(List.of(empty), directory))
                .withMessage(empty + ": 0 bytes (expected: a library)");
        Path text = Files.writeString(directory.resolve("libnereid_text.so.1"), "no library, however long it is");
        assertThatExceptionOfType(IOException.class)
                .isThrownBy(() -> NamedLibrary.load(List.of(text), directory))
                .withMessageContaining("libnereid");
    }

    /** Compiles a library whose own name is another than that of its file, as that of the builder's kernels is. */
    private static void compile(Path library) throws IOException, InterruptedException {
        Process compiler;
        try {
            compiler = new ProcessBuilder(
                            "cc",
                            "-shared",
                            "-fPIC",
                            "-Wl,-soname,do_not_link",
                            "-x",
                            "c",
                            "-o",
                            library.toString(),
                            "-")
                    .redirectErrorStream(true)
                    .start();
        } catch (IOException e) {
            assumeTrue(false, "no C compiler: " + e.getMessage());
            throw e;
        }
        compiler.getOutputStream().write("int nereid_test;".getBytes(StandardCharsets.UTF_8));
        compiler.getOutputStream().close();
        String output = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(compiler.waitFor()).as(output).isZero();
    }
}
