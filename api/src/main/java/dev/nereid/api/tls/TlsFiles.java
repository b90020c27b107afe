package dev.nereid.api.tls;

import static java.util.Objects.requireNonNull;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;

/**
 * PEM files of a TLS endpoint, and the interval of their reloads. Immutable; the content of the files may change at any
 * time, and counts for connections that are made after the next reload.
 *
 * @param certificate the server's certificate, then the certificates of its issuers
 * @param key the server's private key
 * @param clientRoots the certificates of the authorities that issue client certificates; empty if clients need none
 * @param reloadInterval the time between two checks of the files
 */
public record TlsFiles(Path certificate, Path key, Optional<Path> clientRoots, Duration reloadInterval) {
    private static final Duration RELOAD_INTERVAL = Duration.ofSeconds(5);

    /** Checks the components. */
    public TlsFiles {
        requireNonNull(certificate, "certificate");
        requireNonNull(key, "key");
        requireNonNull(clientRoots, "clientRoots");
        if (reloadInterval.toMillis() < 1) {
            throw new IllegalArgumentException("reloadInterval: " + reloadInterval + " (expected: >= 1 ms)");
        }
    }

    /**
     * Creates files that are checked every five seconds.
     *
     * @param certificate the server's certificate, then the certificates of its issuers
     * @param key the server's private key
     * @param clientRoots the certificates of the authorities that issue client certificates; empty if clients need none
     * @return the files
     */
    public static TlsFiles of(Path certificate, Path key, Optional<Path> clientRoots) {
        return new TlsFiles(certificate, key, clientRoots, RELOAD_INTERVAL);
    }

    /**
     * Returns the same files with another interval.
     *
     * @param interval the time between two checks of the files
     * @return the changed files
     */
    public TlsFiles withReloadInterval(Duration interval) {
        return new TlsFiles(certificate, key, clientRoots, interval);
    }
}
