package dev.nereid.distribution;

/** A reason why the server does not start that its user can do something about: one line. */
final class StartFailure extends Exception {
    private static final long serialVersionUID = 1L;

    StartFailure(String message) {
        super(message);
    }

    StartFailure(String message, Throwable cause) {
        super(message, cause);
    }
}
