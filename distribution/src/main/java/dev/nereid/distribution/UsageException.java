package dev.nereid.distribution;

/** What is wrong with a command line: one line. */
final class UsageException extends Exception {
    private static final long serialVersionUID = 1L;

    UsageException(String message) {
        super(message);
    }
}
