package dev.nereid.distribution.process;

/** Reports in one line why the server does not start. */
public final class StartException extends Exception {
    private static final long serialVersionUID = 1L;

    public StartException(String message) {
        super(message);
    }

    public StartException(String message, Throwable cause) {
        super(message, cause);
    }
}
