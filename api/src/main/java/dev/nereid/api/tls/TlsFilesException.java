package dev.nereid.api.tls;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.file.Path;

/** Reports a TLS file that cannot be used. */
public final class TlsFilesException extends IOException {
    /** Role of a TLS file. */
    public enum Part {
        /** The server's certificate. */
        CERTIFICATE,
        /** The server's private key. */
        KEY,
        /** The certificates of the authorities that issue client certificates. */
        CLIENT_ROOTS
    }

    private static final long serialVersionUID = 1L;

    /** The role of the file. */
    private final Part part;

    TlsFilesException(Part part, Path file, String expected) {
        super(file + " (expected: " + expected + ")");
        this.part = requireNonNull(part, "part");
    }

    /** Reports the first line of the cause as well: libraries append whole files to theirs. */
    TlsFilesException(Part part, Path file, String expected, Exception cause) {
        super(
                file + " (expected: " + expected + "): "
                        + cause.toString().lines().findFirst().orElse(""),
                cause);
        this.part = requireNonNull(part, "part");
    }

    /**
     * Returns the role of the file.
     *
     * @return the part
     */
    public Part part() {
        return part;
    }
}
