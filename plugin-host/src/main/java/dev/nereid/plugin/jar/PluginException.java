package dev.nereid.plugin.jar;

/** Reports a plugin that cannot be used, with a message for the operator. Immutable. */
public final class PluginException extends Exception {
    private static final long serialVersionUID = 1L;

    /** Creates the exception. */
    public PluginException(String message) {
        super(message);
    }

    /**
     * Creates the exception.
     *
     * @param cause the caught error or exception
     */
    public PluginException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Returns the message, never {@code null}. */
    public String reason() {
        return String.valueOf(getMessage());
    }
}
