package dev.nereid.backend.python.environment;

import java.io.IOException;

/** Archive that is damaged, or has entries that are not written. The message says why, without the archive's path. */
final class ArchiveException extends IOException {
    private static final long serialVersionUID = 1L;

    ArchiveException(String message) {
        super(message);
    }
}
