package dev.nereid.http.tls;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * PEM files for TLS, and the interval of their reloads. Immutable; what is in the files may change at any time, and
 * counts for the connections that are made after it was noticed.
 *
 * @param certificate the server's certificate and those that vouch for it, in PEM
 * @param key the server's private key, in PEM
 * @param clientRoot who vouches for clients, in PEM; empty if clients need no certificate
 * @param checkInterval how often the files are looked at
 */
public record HttpTls(Path certificate, Path key, Optional<Path> clientRoot, Duration checkInterval) {
    private static final Duration CHECK_INTERVAL = Duration.ofSeconds(5);

    /** Checks the components. */
    public HttpTls {
        requireNonNull(certificate, "certificate");
        requireNonNull(key, "key");
        requireNonNull(clientRoot, "clientRoot");
        if (checkInterval.toMillis() < 1) {
            throw new IllegalArgumentException("checkInterval: " + checkInterval + " (expected: >= 1 ms)");
        }
    }

    /**
     * Encrypts with files that are looked at every five seconds.
     *
     * @param certificate the server's certificate and those that vouch for it, in PEM
     * @param key the server's private key, in PEM
     * @param clientRoot who vouches for clients, in PEM; empty if clients need no certificate
     * @return the files
     */
    public static HttpTls of(Path certificate, Path key, Optional<Path> clientRoot) {
        return new HttpTls(certificate, key, clientRoot, CHECK_INTERVAL);
    }

    /**
     * Returns the same files, looked at more or less often.
     *
     * @param changed how often
     * @return the changed files
     */
    public HttpTls withCheckInterval(Duration changed) {
        return new HttpTls(certificate, key, clientRoot, changed);
    }
}
