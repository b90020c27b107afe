package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;

/** Converts failures of ONNX Runtime to exceptions of the SPI. Stateless. */
final class OnnxErrors {
    /**
     * Expected value of options that capture a run as a CUDA graph. A captured run reads and writes the addresses of
     * its first inputs and outputs, while each batch has other addresses: later results would be wrong.
     */
    static final String NO_GRAPHS = "false, since a captured run reads the addresses of its first inputs";

    private OnnxErrors() {}

    /** Returns a failure of ONNX Runtime in the form of the reference server, with ONNX Runtime's number and text. */
    static BackendException of(OrtException failure) {
        return new BackendException(
                ErrorCode.INTERNAL, "onnx runtime error " + failure.code().number() + ": " + failure.getMessage());
    }

    /** Returns a failure to open a session, as {@link #of}. If a library is missing, the text names its product. */
    static BackendException ofLoad(OrtException failure, OnnxFiles files) {
        String text = files.publicText(String.valueOf(failure.getMessage()));
        return new BackendException(
                ErrorCode.INTERNAL,
                "onnx runtime error " + failure.code().number() + ": " + text.strip()
                        + MissingLibraries.explanation(text));
    }
}
