package dev.nereid.distribution.flags;

/** Reports an invalid command line in one line. */
public final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    public UsageException(String message) {
        super(message);
    }
}
