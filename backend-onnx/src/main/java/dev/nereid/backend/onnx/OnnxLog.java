package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtLog;
import dev.nereid.backend.onnx.ort.OrtSessionOptions;
import dev.nereid.spi.ModelContext;

/** Passes messages of ONNX Runtime on to the logger of a model. Static functions only. */
final class OnnxLog {
    /**
     * The level of ONNX Runtime's own remarks, such as the warnings of its optimizer about unused weights. Operators
     * can act on none of them, so they are in the log with {@code --log-verbose=1} alone.
     */
    static final System.Logger.Level REMARKS = System.Logger.Level.DEBUG;

    private OnnxLog() {}

    static OrtSessionOptions.Logging of(ModelContext context) {
        System.Logger logger = context.logger();
        OrtLog.Severity threshold = logger.isLoggable(REMARKS) ? OrtLog.Severity.INFO : OrtLog.Severity.FATAL;
        return new OrtSessionOptions.Logging(
                context.settings().name(),
                threshold,
                (severity, location, message) -> logger.log(level(severity), message));
    }

    /** An error is also reported to the caller as a failed call; the log keeps it for diagnosis. */
    private static System.Logger.Level level(OrtLog.Severity severity) {
        return switch (severity) {
            case VERBOSE -> System.Logger.Level.TRACE;
            case INFO, WARNING, ERROR -> REMARKS;
            case FATAL -> System.Logger.Level.ERROR;
        };
    }
}
