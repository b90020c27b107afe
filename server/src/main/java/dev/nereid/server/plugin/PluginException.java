package dev.nereid.server.plugin;

/** Reports a plugin that cannot be used, with a message for the operator. Immutable. */
final class PluginException extends Exception {
    private static final long serialVersionUID = 1L;

    PluginException(String message) {
        super(message);
    }

    PluginException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Returns the message, never {@code null}. */
    String reason() {
        return String.valueOf(getMessage());
    }
}
