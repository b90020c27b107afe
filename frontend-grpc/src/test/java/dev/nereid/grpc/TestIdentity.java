package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.util.Base64;

/**
 * A self-signed certificate and its key, made for the test. Immutable.
 *
 * @param certificate the certificate in PEM
 * @param key the private key in PEM
 */
record TestIdentity(Path certificate, Path key) {
    private static final char[] PASSWORD = "password".toCharArray();

    /**
     * Makes an identity for the loopback interface.
     *
     * @param directory the directory of its files
     * @param name what they are called
     * @param algorithm the kind of its key
     */
    static TestIdentity make(Path directory, String name, String algorithm)
            throws IOException, InterruptedException, GeneralSecurityException {
        Path store = directory.resolve(name + ".p12");
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-keyalg",
                        algorithm,
                        "-alias",
                        "it",
                        "-dname",
                        "CN=" + name,
                        "-ext",
                        "san=ip:127.0.0.1,dns:localhost",
                        "-validity",
                        "2",
                        "-storetype",
                        "PKCS12",
                        "-keystore",
                        store.toString(),
                        "-storepass",
                        new String(PASSWORD))
                .redirectErrorStream(true)
                .start();
        String out = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(keytool.waitFor()).as(out).isZero();
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD);
        }
        Key key = keys.getKey("it", PASSWORD);
        TestIdentity identity = new TestIdentity(directory.resolve(name + ".crt"), directory.resolve(name + ".key"));
        Files.writeString(
                identity.certificate,
                pem("CERTIFICATE", keys.getCertificate("it").getEncoded()));
        Files.writeString(identity.key, pem("PRIVATE KEY", key.getEncoded()));
        return identity;
    }

    private static String pem(String type, byte[] content) {
        return "-----BEGIN " + type + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content) + "\n-----END " + type
                + "-----\n";
    }

    /** Puts the files in the place of another identity's. */
    void replace(TestIdentity other) throws IOException {
        Files.copy(certificate, other.certificate, StandardCopyOption.REPLACE_EXISTING);
        Files.copy(key, other.key, StandardCopyOption.REPLACE_EXISTING);
    }
}
