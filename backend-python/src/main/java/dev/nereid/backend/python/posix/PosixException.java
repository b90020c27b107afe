package dev.nereid.backend.python.posix;

import java.io.IOException;

/** A function of the C library has failed. The message names it, with the text of the system for the error. */
public final class PosixException extends IOException {
    private static final long serialVersionUID = 1L;

    private final int errno;

    PosixException(String function, int errno, String text) {
        super(function + ": " + text + " (errno " + errno + ")");
        this.errno = errno;
    }

    /** Returns the number of the error, such as 12 for ENOMEM. */
    public int errno() {
        return errno;
    }
}
