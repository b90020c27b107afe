package dev.nereid.backend.tensorrt;

import dev.nereid.cuda.GpuException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;

/** Errors of the backend. Static functions only. */
final class TensorRtErrors {
    private TensorRtErrors() {}

    static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    static BackendException unsupported(String message) {
        return new BackendException(ErrorCode.UNSUPPORTED, message);
    }

    static BackendException unavailable(GpuException e) {
        return new BackendException(ErrorCode.UNAVAILABLE, String.valueOf(e.getMessage()), e);
    }
}
