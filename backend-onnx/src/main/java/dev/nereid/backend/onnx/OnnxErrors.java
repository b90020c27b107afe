package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;

/** Converts failures of ONNX Runtime to those of the SPI. Stateless. */
final class OnnxErrors {
    private OnnxErrors() {}

    /** Returns a failure of ONNX Runtime as clients of the reference server know it: number and text are its own. */
    static BackendException of(OrtException failure) {
        return new BackendException(
                ErrorCode.INTERNAL, "onnx runtime error " + failure.code().number() + ": " + failure.getMessage());
    }

    /** Returns what is wrong with a model or its configuration. */
    static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    /** Returns what is wrong with a model whose name the message begins with. */
    static BackendException cannotLoad(String model, String message) {
        return invalid("unable to load model '" + model + "', " + message);
    }
}
