package dev.nereid.cuda;

import java.io.Serial;

/** A GPU that could not do its work, or has failed. Immutable. */
public final class GpuException extends RuntimeException {
    @Serial
    private static final long serialVersionUID = 1;

    /** Creates the exception. */
    public GpuException(String message) {
        super(message);
    }
}
