package dev.nereid.grpc;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.grpc.util.CertificateUtils;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.Optional;

/**
 * Content of the TLS files at one time. Immutable.
 *
 * @param certificates the content of the server's certificate file
 * @param key the content of the server's key file
 * @param clientRoots the content of the file of certificates that vouch for clients
 */
record TlsFiles(String certificates, String key, Optional<String> clientRoots) {
    /** What the header of an encrypted key says, of either format. */
    private static final String ENCRYPTED = "ENCRYPTED";

    private static final byte[] PROBE = {1, 2, 3};

    /** Reads the files. Blocks. */
    static TlsFiles read(GrpcOptions.Tls files) throws TlsFilesException {
        Optional<String> roots = Optional.empty();
        if (files.clientRoots().isPresent()) {
            roots = Optional.of(content(files.clientRoots().get()));
        }
        return new TlsFiles(content(files.certificate()), content(files.key()), roots);
    }

    private static String content(Path file) throws TlsFilesException {
        if (Files.exists(file) && !Files.isRegularFile(file)) { // to open a pipe would wait for its writer
            throw new TlsFilesException(file, "a regular file");
        }
        try {
            return Files.readString(file, ISO_8859_1);
        } catch (IOException e) {
            throw new TlsFilesException(file, "a file that can be read", e);
        }
    }

    /**
     * The server's certificate chain and private key. Immutable.
     *
     * @param chain its certificate, then those that vouch for it
     * @param key its private key
     */
    record Identity(List<X509Certificate> chain, PrivateKey key) {}

    /** Returns what the server shows to its clients. */
    Identity identity(GrpcOptions.Tls files) throws TlsFilesException {
        List<X509Certificate> chain = certificates(files.certificate(), certificates);
        if (key.contains(ENCRYPTED)) {
            throw new TlsFilesException(
                    files.key(), "a private key without a passphrase in PEM; this one is encrypted");
        }
        PrivateKey privateKey;
        try {
            privateKey = CertificateUtils.getPrivateKey(stream(key));
        } catch (IOException | GeneralSecurityException | RuntimeException e) {
            throw new TlsFilesException(
                    files.key(),
                    "an RSA or EC private key in PEM, PKCS #8; openssl pkcs8 -topk8 -nocrypt makes one of others",
                    e);
        }
        if (!fit(privateKey, chain.getFirst().getPublicKey())) {
            throw new TlsFilesException(files.key(), "the key of the certificate in " + files.certificate());
        }
        return new Identity(chain, privateKey);
    }

    /** Returns the certificates that vouch for clients, if clients need any. */
    Optional<List<X509Certificate>> roots(GrpcOptions.Tls files) throws TlsFilesException {
        return files.clientRoots().isPresent() && clientRoots.isPresent()
                ? Optional.of(certificates(files.clientRoots().get(), clientRoots.get()))
                : Optional.empty();
    }

    private static List<X509Certificate> certificates(Path file, String content) throws TlsFilesException {
        List<X509Certificate> certificates;
        try {
            certificates = List.of(CertificateUtils.getX509Certificates(stream(content)));
        } catch (GeneralSecurityException | RuntimeException e) {
            throw new TlsFilesException(file, "certificates in PEM", e);
        }
        if (certificates.isEmpty()) {
            throw new TlsFilesException(file, "certificates in PEM");
        }
        return certificates;
    }

    private static InputStream stream(String content) {
        return new ByteArrayInputStream(content.getBytes(ISO_8859_1));
    }

    /** Says whether a key is the other half of a certificate's; files are replaced one after the other. */
    private static boolean fit(PrivateKey secret, PublicKey open) {
        try {
            Signature signature =
                    Signature.getInstance(secret.getAlgorithm().equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA");
            signature.initSign(secret);
            signature.update(PROBE);
            byte[] signed = signature.sign();
            signature.initVerify(open);
            signature.update(PROBE);
            return signature.verify(signed);
        } catch (GeneralSecurityException e) {
            return false;
        }
    }

    /** Keeps the key to itself. */
    @Override
    public String toString() {
        return "TlsFiles";
    }
}
