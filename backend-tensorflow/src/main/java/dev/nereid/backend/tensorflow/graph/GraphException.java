package dev.nereid.backend.tensorflow.graph;

/** A reason why files are no model that can be served. Immutable. */
public final class GraphException extends Exception {
    private static final long serialVersionUID = 1L;

    GraphException(String message) {
        super(message);
    }

    GraphException(String message, Throwable cause) {
        super(message, cause);
    }
}
