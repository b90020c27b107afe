package dev.nereid.grpc;

import java.io.IOException;
import java.nio.file.Path;

/** Reports a TLS file that cannot be used. */
public final class TlsFilesException extends IOException {
    private static final long serialVersionUID = 1L;

    TlsFilesException(Path file, String expected) {
        super(file + " (expected: " + expected + ")");
    }

    TlsFilesException(Path file, String expected, Throwable cause) {
        super(file + " (expected: " + expected + ")", cause);
    }
}
