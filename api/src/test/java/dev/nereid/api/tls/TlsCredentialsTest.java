package dev.nereid.api.tls;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.tls.TlsFilesException.Part;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class TlsCredentialsTest {
    @TempDir
    private static Path made;

    private static TestKeys rsa;
    private static TestKeys ec;
    private static TestKeys other;
    private static TestKeys edwards;

    @TempDir
    private Path directory;

    private Path certificate;
    private Path key;

    @BeforeAll
    static void makeKeys() throws Exception {
        rsa = TestKeys.make(made, "rsa", "RSA");
        ec = TestKeys.make(made, "ec", "EC");
        other = TestKeys.make(made, "other", "EC");
        edwards = TestKeys.make(made, "edwards", "Ed25519");
    }

    @BeforeEach
    void writeFiles() throws Exception {
        certificate = write("server.crt", ec.certificatePem());
        key = write("server.key", ec.keyPem());
    }

    private Path write(String name, String text) throws IOException {
        return Files.writeString(directory.resolve(name), text);
    }

    private TlsFiles files() {
        return TlsFiles.of(certificate, key, Optional.empty());
    }

    @Test
    void readsCertificateAndKey() throws Exception {
        TlsCredentials read = TlsCredentials.read(files());

        assertThat(read.files()).isEqualTo(files());
        assertThat(read.chain()).containsExactly(ec.certificate());
        assertThat(read.key()).isEqualTo(ec.key());
        assertThat(read.clientRoots()).isEmpty();
        assertThat(read.clientRootsPem()).isEmpty();
        assertThat(read.chainPem()).isEqualTo(ec.certificatePem());
        assertThat(read.keyPem()).isEqualTo(ec.keyPem());
    }

    @Test
    void readsChainsAndClientRoots() throws Exception {
        write("server.crt", ec.certificatePem() + "\nIssuer:\n" + other.certificatePem());
        Path roots = write("roots", rsa.certificatePem() + other.certificatePem());

        TlsCredentials read = TlsCredentials.read(TlsFiles.of(certificate, key, Optional.of(roots)));

        assertThat(read.chain()).containsExactly(ec.certificate(), other.certificate());
        assertThat(read.clientRoots()).containsExactly(rsa.certificate(), other.certificate());
        assertThat(read.clientRootsPem()).contains(rsa.certificatePem() + other.certificatePem());
    }

    @Test
    void readsBothFromOneFile() throws Exception {
        key = certificate;
        write("server.crt", ec.keyPem() + ec.certificatePem());

        assertThat(TlsCredentials.read(files()).chain()).containsExactly(ec.certificate());
    }

    @Test
    void readsTraditionalKeys() throws Exception {
        write("server.key", ec.traditionalKeyPem());
        assertThat(TlsCredentials.read(files()).keyPem()).isEqualTo(ec.keyPem());

        write("server.crt", rsa.certificatePem());
        write("server.key", rsa.traditionalKeyPem());
        assertThat(TlsCredentials.read(files()).keyPem()).isEqualTo(rsa.keyPem());
    }

    @Test
    void refusesFilesThatCannotBeRead() throws Exception {
        Path missing = directory.resolve("missing");

        assertRefused(
                TlsFiles.of(missing, key, Optional.empty()),
                Part.CERTIFICATE,
                missing + " (expected: a file that can be read): java.nio.file.NoSuchFileException: ");
        assertRefused(
                TlsFiles.of(certificate, missing, Optional.empty()),
                Part.KEY,
                missing + " (expected: a file that can be read)");
        assertRefused(
                TlsFiles.of(certificate, key, Optional.of(missing)),
                Part.CLIENT_ROOTS,
                missing + " (expected: a file that can be read)");
        assertRefused(
                TlsFiles.of(directory, key, Optional.empty()),
                Part.CERTIFICATE,
                directory + " (expected: a regular file)");
    }

    @Test
    void refusesFilesOfOtherContent() throws Exception {
        Path garbage = write("garbage", "garbage");
        Path empty = write("empty", "");

        assertRefused(
                TlsFiles.of(garbage, key, Optional.empty()),
                Part.CERTIFICATE,
                garbage + " (expected: certificates in PEM)");
        assertRefused(
                TlsFiles.of(empty, key, Optional.empty()),
                Part.CERTIFICATE,
                empty + " (expected: certificates in PEM)");
        assertRefused(
                TlsFiles.of(key, key, Optional.empty()), Part.CERTIFICATE, key + " (expected: certificates in PEM)");
        assertRefused(
                TlsFiles.of(certificate, garbage, Optional.empty()),
                Part.KEY,
                garbage + " (expected: an RSA or EC private key in PEM)");
        assertRefused(
                TlsFiles.of(certificate, key, Optional.of(key)),
                Part.CLIENT_ROOTS,
                key + " (expected: certificates in PEM)");
        write("server.key", ec.keyPem().replace("\n", "\n!").replaceAll("[A-Z]", "="));
        assertRefused(files(), Part.KEY, key + " (expected: an RSA or EC private key in PEM)");
    }

    @Test
    void refusesKeysOfOtherKinds() throws Exception {
        write("server.key", edwards.keyPem());
        assertRefused(files(), Part.KEY, key + " (expected: an RSA or EC private key in PEM)");
        write("server.key", ec.keyPem().replace("PRIVATE", "ENCRYPTED PRIVATE"));
        assertRefused(
                files(),
                Part.KEY,
                key + " (expected: a private key without a passphrase in PEM; this one is encrypted)");
        write("server.key", ec.keyPem().replace("PRIVATE", "DSA PRIVATE"));
        assertRefused(files(), Part.KEY, key + " (expected: an RSA or EC private key in PEM)");
    }

    @Test
    void refusesKeysOfOtherCertificates() throws Exception {
        String text = key + " (expected: the key of the certificate in " + certificate + ")";

        write("server.key", other.keyPem());
        assertRefused(files(), Part.KEY, text);
        write("server.key", other.traditionalKeyPem());
        assertRefused(files(), Part.KEY, text);
        write("server.key", rsa.keyPem());
        assertRefused(files(), Part.KEY, text);
    }

    private static void assertRefused(TlsFiles files, Part part, String text) {
        assertThatThrownBy(() -> TlsCredentials.read(files))
                .isInstanceOfSatisfying(
                        TlsFilesException.class,
                        error -> assertThat(error.part()).isEqualTo(part))
                .hasMessageStartingWith(text)
                .satisfies(error -> assertThat(error.getMessage()).hasLineCount(1));
    }

    @Test
    void readsChanges() throws Exception {
        TlsCredentials read = TlsCredentials.read(files());
        assertThat(read.readChanges()).isEmpty();

        write("server.key", rsa.keyPem());
        assertThatThrownBy(read::readChanges).isInstanceOf(TlsFilesException.class);

        write("server.crt", rsa.certificatePem());
        assertThat(read.readChanges().orElseThrow().chain()).containsExactly(rsa.certificate());
    }

    @Test
    void keepsTheKeyOutOfItsText() throws Exception {
        assertThat(TlsCredentials.read(files()).toString())
                .contains("server.crt")
                .doesNotContain("PRIVATE");
    }

    @Test
    void checksTheInterval() {
        assertThat(files().reloadInterval()).isEqualTo(Duration.ofSeconds(5));
        assertThat(files().withReloadInterval(Duration.ofMillis(1)).reloadInterval())
                .isEqualTo(Duration.ofMillis(1));
        assertThatThrownBy(() -> files().withReloadInterval(Duration.ofNanos(1)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("reloadInterval: PT0.000000001S (expected: >= 1 ms)");
    }
}
