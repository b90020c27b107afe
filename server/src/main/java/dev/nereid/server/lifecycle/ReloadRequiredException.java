package dev.nereid.server.lifecycle;

/** Reports that a version cannot be updated while it serves. The version has to be loaded again. */
public final class ReloadRequiredException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Creates the exception with the obstacle, for clients. */
    ReloadRequiredException(String reason) {
        super(reason, null, false, false);
    }

    /** Returns the obstacle, as a text for clients. */
    public String reason() {
        return String.valueOf(getMessage());
    }
}
