package dev.nereid.distribution.client;

/** Reports in one line why a request to a server failed. */
public final class RequestException extends Exception {
    private static final long serialVersionUID = 1L;

    public RequestException(String message) {
        super(message);
    }

    RequestException(String message, Throwable cause) {
        super(message, cause);
    }
}
