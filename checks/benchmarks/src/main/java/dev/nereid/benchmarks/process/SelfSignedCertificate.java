package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.Loopback;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.SocketFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * A self-signed certificate, created by openssl for a run. Immutable.
 *
 * @param file the file of the certificate, in PEM
 * @param key the file of its private key, in PEM
 */
public record SelfSignedCertificate(Path file, Path key) {
    /** Creates a certificate for this machine. Blocks. */
    public static SelfSignedCertificate create(BenchmarkRun bench) throws IOException, InterruptedException {
        Path file = bench.workspace().path("certificate.pem");
        Path key = bench.workspace().path("key.pem");
        Process openssl = bench.children()
                .start(new ProcessBuilder(
                                "openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-days",
                                "2",
                                "-subj",
                                "/CN=localhost",
                                "-addext",
                                "subjectAltName=DNS:localhost,IP:" + Loopback.ADDRESS,
                                "-keyout",
                                key.toString(),
                                "-out",
                                file.toString())
                        .redirectErrorStream(true));
        String output = new String(openssl.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (openssl.waitFor() != 0) {
            throw new IOException("openssl failed: " + output.strip());
        }
        return new SelfSignedCertificate(file, key);
    }

    /** Returns a factory of connections to a server with this certificate. */
    public SocketFactory clients() throws IOException {
        try (InputStream pem = Files.newInputStream(file)) {
            KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
            trusted.load(null, null);
            trusted.setCertificateEntry(
                    "server", CertificateFactory.getInstance("X.509").generateCertificate(pem));
            TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(trusted);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context.getSocketFactory();
        } catch (GeneralSecurityException e) {
            throw new IOException(file + ": " + e.getMessage(), e);
        }
    }
}
