package dev.nereid.api.tls;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.nereid.api.tls.TlsFilesException.Part;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateEncodingException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Content of TLS files at one time, checked to belong together. Immutable. */
public final class TlsCredentials {
    private static final Pattern CERTIFICATE =
            Pattern.compile("-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----");
    private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});

    private final TlsFiles files;
    private final List<byte[]> contents;
    private final List<X509Certificate> chain;
    private final PrivateKey key;
    private final List<X509Certificate> clientRoots;

    private TlsCredentials(TlsFiles files, List<byte[]> contents) throws TlsFilesException {
        this.files = files;
        this.contents = contents;
        this.chain = certificates(Part.CERTIFICATE, files.certificate(), contents.get(0));
        this.key = key(files, contents.get(1), chain.getFirst());
        this.clientRoots = files.clientRoots().isPresent()
                ? certificates(Part.CLIENT_ROOTS, files.clientRoots().get(), contents.get(2))
                : List.of();
    }

    /**
     * Reads the files and checks that they can be used together. Blocks.
     *
     * @param files the files
     * @return their content
     * @throws TlsFilesException if a file cannot be read, or cannot be used
     */
    public static TlsCredentials read(TlsFiles files) throws TlsFilesException {
        return new TlsCredentials(files, contents(files));
    }

    /**
     * Reads the files again. Blocks.
     *
     * @return their content; empty if it is the same as before
     * @throws TlsFilesException if a file cannot be read, or has changed and cannot be used
     */
    public Optional<TlsCredentials> readChanges() throws TlsFilesException {
        List<byte[]> read = contents(files);
        boolean same = true;
        for (int i = 0; i < read.size(); i++) {
            same &= Arrays.equals(read.get(i), contents.get(i));
        }
        return same ? Optional.empty() : Optional.of(new TlsCredentials(files, read));
    }

    private static List<byte[]> contents(TlsFiles files) throws TlsFilesException {
        List<byte[]> contents = new ArrayList<>();
        contents.add(content(Part.CERTIFICATE, files.certificate()));
        contents.add(content(Part.KEY, files.key()));
        if (files.clientRoots().isPresent()) {
            contents.add(content(Part.CLIENT_ROOTS, files.clientRoots().get()));
        }
        return contents;
    }

    private static byte[] content(Part part, Path file) throws TlsFilesException {
        if (Files.exists(file) && !Files.isRegularFile(file)) { // to open a pipe would wait for its writer
            throw new TlsFilesException(part, file, "a regular file");
        }
        try {
            return Files.readAllBytes(file);
        } catch (IOException e) {
            throw new TlsFilesException(part, file, "a file that can be read", e);
        }
    }

    /** Reads the certificates of a file. Other contents, such as the key, are ignored. */
    private static List<X509Certificate> certificates(Part part, Path file, byte[] content) throws TlsFilesException {
        StringBuilder pem = new StringBuilder();
        Matcher matcher = CERTIFICATE.matcher(new String(content, ISO_8859_1));
        while (matcher.find()) {
            pem.append(matcher.group()).append('\n');
        }
        byte[] encoded = pem.isEmpty() ? content : pem.toString().getBytes(US_ASCII);
        List<X509Certificate> certificates = new ArrayList<>();
        try {
            Collection<? extends Certificate> read =
                    CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(encoded));
            for (Certificate certificate : read) {
                certificates.add((X509Certificate) certificate);
            }
        } catch (CertificateException | RuntimeException e) {
            throw new TlsFilesException(part, file, "certificates in PEM", e);
        }
        if (certificates.isEmpty()) {
            throw new TlsFilesException(part, file, "certificates in PEM");
        }
        return List.copyOf(certificates);
    }

    private static PrivateKey key(TlsFiles files, byte[] content, X509Certificate certificate)
            throws TlsFilesException {
        if (PrivateKeyPem.isEncrypted(content)) {
            throw new TlsFilesException(
                    Part.KEY, files.key(), "a private key without a passphrase in PEM; this one is encrypted");
        }
        PrivateKey key;
        boolean matches;
        try {
            key = PrivateKeyPem.read(content, certificate.getPublicKey());
            matches = PrivateKeyPem.matches(key, certificate.getPublicKey());
        } catch (GeneralSecurityException | RuntimeException e) {
            throw new TlsFilesException(Part.KEY, files.key(), "an RSA or EC private key in PEM", e);
        }
        if (!matches) {
            throw new TlsFilesException(Part.KEY, files.key(), "the key of the certificate in " + files.certificate());
        }
        return key;
    }

    /**
     * Returns the files.
     *
     * @return the files that were read
     */
    public TlsFiles files() {
        return files;
    }

    /**
     * Returns the certificate chain of the server.
     *
     * @return the server's certificate, then the certificates of its issuers
     */
    public List<X509Certificate> chain() {
        return chain;
    }

    /**
     * Returns the private key of the server.
     *
     * @return the key of the first certificate
     */
    public PrivateKey key() {
        return key;
    }

    /**
     * Returns the certificates of the authorities that issue client certificates.
     *
     * @return the certificates; empty if clients need none
     */
    public List<X509Certificate> clientRoots() {
        return clientRoots;
    }

    /**
     * Encodes the certificate chain.
     *
     * @return the certificates in PEM
     */
    public String chainPem() {
        return pem(chain);
    }

    /**
     * Encodes the private key.
     *
     * @return the key in PEM, PKCS #8
     */
    public String keyPem() {
        return pem("PRIVATE KEY", key.getEncoded());
    }

    /**
     * Encodes the certificates of the authorities that issue client certificates.
     *
     * @return the certificates in PEM; empty if clients need none
     */
    public Optional<String> clientRootsPem() {
        return clientRoots.isEmpty() ? Optional.empty() : Optional.of(pem(clientRoots));
    }

    private static String pem(List<X509Certificate> certificates) {
        StringBuilder pem = new StringBuilder();
        try {
            for (X509Certificate certificate : certificates) {
                pem.append(pem("CERTIFICATE", certificate.getEncoded()));
            }
        } catch (CertificateEncodingException e) {
            throw new IllegalStateException("a certificate that was read cannot be encoded", e);
        }
        return pem.toString();
    }

    private static String pem(String kind, byte[] content) {
        return "-----BEGIN " + kind + "-----\n" + LINES.encodeToString(content) + "\n-----END " + kind + "-----\n";
    }

    /**
     * Creates the error of credentials that the transport cannot use.
     *
     * @param cause the error of the transport
     * @return the error, not thrown
     */
    public TlsFilesException unusable(GeneralSecurityException cause) {
        return new TlsFilesException(
                Part.CERTIFICATE, files.certificate(), "a certificate that this JVM can encrypt with", cause);
    }

    /** Names the files, and not the key. */
    @Override
    public String toString() {
        return "TlsCredentials[" + files + "]";
    }
}
