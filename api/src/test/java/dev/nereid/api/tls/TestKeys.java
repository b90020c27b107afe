package dev.nereid.api.tls;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.Base64;

/**
 * A self-signed certificate and its key, made by the JDK's own tool. Immutable.
 *
 * @param certificate the certificate
 * @param key its key
 */
record TestKeys(X509Certificate certificate, PrivateKey key) {
    private static final char[] PASSWORD = "password".toCharArray();

    static TestKeys make(Path directory, String name, String algorithm)
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
        return new TestKeys((X509Certificate) keys.getCertificate("it"), (PrivateKey) keys.getKey("it", PASSWORD));
    }

    String certificatePem() throws GeneralSecurityException {
        return pem("CERTIFICATE", certificate.getEncoded());
    }

    String keyPem() {
        return pem("PRIVATE KEY", key.getEncoded());
    }

    /** Returns the key in its traditional form: the octet string that PKCS #8 has after version and algorithm. */
    String traditionalKeyPem() {
        byte[] pkcs8 = key.getEncoded();
        int at = contentStart(pkcs8, 0); // of the sequence
        at = next(pkcs8, at); // behind the version
        at = next(pkcs8, at); // behind the algorithm
        return pem(
                key.getAlgorithm() + " PRIVATE KEY",
                Arrays.copyOfRange(pkcs8, contentStart(pkcs8, at), next(pkcs8, at)));
    }

    private static int contentStart(byte[] der, int at) {
        return at + 2 + (der[at + 1] < 0 ? der[at + 1] & 0x7F : 0);
    }

    private static int next(byte[] der, int at) {
        int start = contentStart(der, at);
        int length = der[at + 1];
        if (length < 0) {
            length = 0;
            for (int i = at + 2; i < start; i++) {
                length = (length << 8) | (der[i] & 0xFF);
            }
        }
        return start + length;
    }

    private static String pem(String type, byte[] content) {
        return "-----BEGIN " + type + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content) + "\n-----END " + type
                + "-----\n";
    }
}
