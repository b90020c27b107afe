package dev.nereid.backend.python.execute;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;

/** There is no shared memory for an input of a request, and the input is too large for a frame. */
final class InputMemoryException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient InferenceRequest request;

    InputMemoryException(InferenceRequest request, long size) {
        super("Failed to increase the shared memory pool size to " + size + " bytes.");
        this.request = request;
    }

    /** Returns the request that fails, while the others of its batch are executed. */
    InferenceRequest request() {
        return request;
    }

    BackendException error() {
        return new BackendException(ErrorCode.INTERNAL, String.valueOf(getMessage()), this);
    }
}
