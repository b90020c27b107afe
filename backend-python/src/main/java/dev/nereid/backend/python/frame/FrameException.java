package dev.nereid.backend.python.frame;

/** A frame that does not have the form that the protocol gives it. The message names the field. */
public final class FrameException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Creates the exception with a message of the field, its value and the expected one. */
    public FrameException(String message) {
        super(message);
    }
}
