package dev.nereid.plugin.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.RepositoryAgent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ChecksumAgentTest {
    /** Of the text "abc", as the standards of the algorithms print them. */
    private static final String MD5 = "900150983cd24fb0d6963f7d28e17f72";

    private static final String SHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    @TempDir
    private Path root;

    private Path model;

    @BeforeEach
    void createModel() throws IOException {
        model = Files.createDirectories(root.resolve("m"));
        Files.createDirectories(model.resolve("1"));
        Files.writeString(model.resolve("1/model.txt"), "abc");
        Files.writeString(root.resolve("secret.txt"), "abc");
    }

    @ParameterizedTest
    @CsvSource({
        "MD5:1/model.txt, " + MD5,
        "md5:1/model.txt, " + MD5,
        "SHA256:1/model.txt, " + SHA256,
        "sha-256:1/model.txt, BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"
    })
    void acceptsFilesWithTheirChecksums(String key, String value) {
        assertThat(agent(Map.of(key, value)).load(model)).isEqualTo(model);
    }

    @Test
    void acceptsAModelWithoutParameters() {
        assertThat(agent(Map.of()).load(model)).isEqualTo(model);
    }

    @Test
    void readsAFileLargerThanItsBuffer() throws Exception {
        Files.write(model.resolve("large"), new byte[1_000_000]);

        // md5sum of a million zero bytes
        assertThat(agent(Map.of("MD5:large", "879f4bba57ed37c9ec5e5aedf9864698"))
                        .load(model))
                .isEqualTo(model);
    }

    @Test
    void refusesAnotherContent() throws Exception {
        Files.writeString(model.resolve("1/model.txt"), "abd");
        RepositoryAgent agent = agent(Map.of("MD5:1/model.txt", MD5));

        assertThatThrownBy(() -> agent.load(model))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage("Mismatched MD5 hash for file 1/model.txt, expect: " + MD5
                        + ", got: 4911e516e5aa21d327512e0c8b197616");
    }

    @Test
    void refusesAMissingFile() {
        assertThatThrownBy(() -> agent(Map.of("SHA256:2/model.txt", SHA256)).load(model))
                .hasMessage("SHA256 checksum: '2/model.txt' (expected: an existing file)");
    }

    @Test
    void refusesADirectory() {
        assertThatThrownBy(() -> agent(Map.of("MD5:1", MD5)).load(model))
                .hasMessage("MD5 checksum: '1' (expected: a regular file)");
    }

    @Test
    void refusesAPipeWithoutOpeningIt() throws Exception {
        assertThat(new ProcessBuilder("mkfifo", model.resolve("pipe").toString())
                        .start()
                        .waitFor())
                .isZero();

        assertThatThrownBy(() -> agent(Map.of("MD5:pipe", MD5)).load(model))
                .hasMessage("MD5 checksum: 'pipe' (expected: a regular file)");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../secret.txt",
                "1/../1/model.txt",
                "1/../../secret.txt",
                "/etc/hostname",
                "out/secret.txt",
                "link.txt",
                ".",
                ".."
            })
    void refusesPathsThatLeaveTheModel(String file) throws IOException {
        Files.createSymbolicLink(model.resolve("out"), root);
        Files.createSymbolicLink(model.resolve("link.txt"), root.resolve("secret.txt"));

        assertThatThrownBy(() -> agent(Map.of("MD5:" + file, MD5)).load(model))
                .hasMessageStartingWith("MD5 checksum: '" + file + "' (expected: a path below its directory");
    }

    @Test
    void takesEncodedPathsLiterally() {
        assertThatThrownBy(() -> agent(Map.of("MD5:%2e%2e/secret.txt", MD5)).load(model))
                .hasMessage("MD5 checksum: '%2e%2e/secret.txt' (expected: an existing file)");
    }

    @Test
    void refusesAPathThatIsNone() {
        assertThatThrownBy(() -> agent(Map.of("MD5:a\0b", MD5)).load(model))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining("expected: a path below its directory");
    }

    @ParameterizedTest
    @CsvSource({
        "model.txt, failed to parse key: model.txt (expected: SHA256:<file> or MD5:<file>)",
        "MD5:, failed to parse key: MD5: (expected: SHA256:<file> or MD5:<file>)",
        "SHA1:a, Unsupported checksum algorithm: SHA1 for file a (expected: SHA256 or MD5)"
    })
    void refusesParametersBeforeItReadsAFile(String key, String message) {
        assertThatThrownBy(() -> agent(Map.of(key, MD5))).hasMessage(message);
    }

    /** As on the reference server, where a text that is no checksum is one that no file has. */
    @ParameterizedTest
    @CsvSource({
        "MD5, 900150983cd24fb0d6963f7d28e17f72, invalid_checksum, 32",
        "MD5, 900150983cd24fb0d6963f7d28e17f72, x00150983cd24fb0d6963f7d28e17f72, 32",
        "MD5, 900150983cd24fb0d6963f7d28e17f72, '', 32",
        "SHA256, ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad, 900150983cd24fb0d6963f7d28e17f72, 64"
    })
    void refusesAChecksumThatIsNone(String algorithm, String found, String value, int digits) throws Exception {
        Files.writeString(model.resolve("abc"), "abc");
        RepositoryAgent agent = agent(Map.of(algorithm + ":abc", value));

        assertThatThrownBy(() -> agent.load(model))
                .hasMessage("Mismatched " + algorithm + " hash for file abc, expect: " + value + ", got: " + found
                        + " (expected: " + digits + " hexadecimal digits)");
    }

    private static RepositoryAgent agent(Map<String, String> parameters) {
        return new ChecksumAgentProvider().create(new AgentChain.LoadContext("checksum", "m", parameters, () -> "{}"));
    }
}
