package dev.nereid.http.tls;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.ClientAuth;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.net.OpenSSLEngineOptions;
import io.vertx.core.net.PemKeyCertOptions;
import io.vertx.core.net.PemTrustOptions;
import io.vertx.core.net.ServerSSLOptions;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.KeyManager;
import javax.net.ssl.X509KeyManager;

/**
 * Content of the TLS files at one time, checked to belong together. Immutable.
 *
 * @param files the files
 * @param certificate the server's certificate
 * @param key its private key
 * @param clientRoot who vouches for clients, if anybody must
 */
public record Certificates(HttpTls files, Buffer certificate, Buffer key, Optional<Buffer> clientRoot) {
    private static final String[] KEY_TYPES = {"RSA", "EC", "EdDSA", "Ed25519", "Ed448", "RSASSA-PSS"};
    /** What the header of an encrypted key says, of either format. */
    private static final String ENCRYPTED = "ENCRYPTED";

    private static final byte[] PROBE = {1, 2, 3};

    /**
     * Reads the files and checks that they can be used together.
     *
     * @throws IllegalArgumentException if one cannot be read, or not be used
     */
    public static Certificates read(HttpTls files, Vertx vertx) {
        Certificates read = new Certificates(
                files,
                read("http-server-cert", files.certificate()),
                read("http-server-key", files.key()),
                files.clientRoot().map(root -> read("http-root-cert", root)));
        read.check(vertx);
        return read;
    }

    /** Says whether the content is the same; the files themselves always are. */
    boolean isSame(Certificates other) {
        return certificate.equals(other.certificate) && key.equals(other.key) && clientRoot.equals(other.clientRoot);
    }

    /** Has a server encrypt with these from its start, by native code where it can be had. */
    public void applyTo(HttpServerOptions options, Duration handshakeTimeout) {
        if (OpenSSLEngineOptions.isAvailable()) {
            options.setSslEngineOptions(new OpenSSLEngineOptions());
        }
        options.setSsl(true).setUseAlpn(false).setKeyCertOptions(pair());
        options.setSslHandshakeTimeout(handshakeTimeout.toMillis()).setSslHandshakeTimeoutUnit(TimeUnit.MILLISECONDS);
        trust().ifPresent(trust -> options.setTrustOptions(trust).setClientAuth(ClientAuth.REQUIRED));
    }

    /** Returns what a running server needs to encrypt with these. */
    ServerSSLOptions options() {
        ServerSSLOptions options = new ServerSSLOptions().setKeyCertOptions(pair());
        trust().ifPresent(trust -> options.setTrustOptions(trust).setClientAuth(ClientAuth.REQUIRED));
        return options;
    }

    private PemKeyCertOptions pair() {
        return new PemKeyCertOptions().addCertValue(certificate).addKeyValue(key);
    }

    private Optional<PemTrustOptions> trust() {
        return clientRoot.map(root -> new PemTrustOptions().addCertValue(root));
    }

    private static Buffer read(String flag, Path file) {
        if (Files.exists(file) && !Files.isRegularFile(file)) { // to open a pipe would wait for its writer
            throw new IllegalArgumentException(flag + ": " + file + " (expected: a regular file)");
        }
        try {
            return Buffer.buffer(Files.readAllBytes(file));
        } catch (IOException e) {
            throw new IllegalArgumentException(flag + ": " + file + " (expected: a file that can be read): " + e, e);
        }
    }

    private void check(Vertx vertx) {
        if (key.toString(US_ASCII).contains(ENCRYPTED)) {
            throw new IllegalArgumentException("http-server-key: " + files.key()
                    + ": is encrypted (expected: a private key without a passphrase in PEM)");
        }
        try {
            for (KeyManager manager : pair().getKeyManagerFactory(vertx).getKeyManagers()) {
                if (manager instanceof X509KeyManager keys) {
                    checkPair(keys);
                }
            }
        } catch (Exception e) { // whatever the libraries throw that read them
            throw isCertificate()
                    ? unusable(
                            "http-server-key", files.key(), "the private key of " + files.certificate() + " in PEM", e)
                    : unusable("http-server-cert", files.certificate(), "a certificate in PEM", e);
        }
        try {
            if (trust().isPresent()) {
                trust().get().getTrustManagerFactory(vertx);
            }
        } catch (Exception e) { // whatever the libraries throw that read it
            throw unusable("http-root-cert", files.clientRoot().orElseThrow(), "certificates in PEM", e);
        }
    }

    /** Says whether the file of the certificate is in order, and so that of the key is not. */
    private boolean isCertificate() {
        try {
            return !CertificateFactory.getInstance("X.509")
                    .generateCertificates(new ByteArrayInputStream(certificate.getBytes()))
                    .isEmpty();
        } catch (CertificateException e) {
            return false;
        }
    }

    /** Signs something: nothing else finds out that a key belongs to another certificate before a client does. */
    private static void checkPair(X509KeyManager keys) throws GeneralSecurityException {
        for (String type : KEY_TYPES) {
            String[] aliases = keys.getServerAliases(type, null);
            for (String alias : aliases == null ? new String[0] : aliases) {
                PublicKey open = keys.getCertificateChain(alias)[0].getPublicKey();
                PrivateKey secret = keys.getPrivateKey(alias);
                if (!secret.getAlgorithm().equals(open.getAlgorithm())) {
                    throw new GeneralSecurityException("the key is of another type than the certificate");
                }
                Signature signature = Signature.getInstance(algorithm(open));
                signature.initSign(secret);
                signature.update(PROBE);
                byte[] signed = signature.sign();
                signature.initVerify(open);
                signature.update(PROBE);
                if (!signature.verify(signed)) {
                    throw new GeneralSecurityException("the key belongs to another certificate");
                }
            }
        }
    }

    private static String algorithm(PublicKey key) {
        return switch (key.getAlgorithm()) {
            case "RSA" -> "SHA256withRSA";
            case "EC" -> "SHA256withECDSA";
            default -> key.getAlgorithm();
        };
    }

    private static IllegalArgumentException unusable(String flag, Path file, String expected, Exception cause) {
        return new IllegalArgumentException(
                flag + ": " + file + " (expected: " + expected + "): " + firstLine(cause), cause);
    }

    private static String firstLine(Exception cause) {
        return cause.toString().lines().findFirst().orElse("");
    }
}
