package dev.nereid.backend.tensorrt.presets;

import java.util.ArrayList;
import java.util.List;
import org.bytedeco.tensorrt.nvinfer.ILogger;

/** Receives TensorRT's log, on any thread: errors are kept for the call of their thread, the rest goes to the log. */
final class NvInferLog extends ILogger {
    private static final System.Logger LOG = System.getLogger("tensorrt");
    private static final int MAX_ERRORS = 8;
    private static final int WARNING = 2;
    private static final int INFO = 3;

    private final ThreadLocal<List<String>> errors = ThreadLocal.withInitial(ArrayList::new);

    @Override
    public void log(Severity severity, String message) {
        int level = severity.value;
        if (level < WARNING) {
            List<String> kept = errors.get();
            if (kept.size() < MAX_ERRORS) {
                kept.add(message.strip());
            }
        } else if (level == WARNING) {
            LOG.log(System.Logger.Level.WARNING, "{0}", message);
        } else if (level == INFO) {
            LOG.log(System.Logger.Level.DEBUG, "{0}", message);
        }
    }

    /** Forgets the errors of this thread. */
    void clear() {
        errors.get().clear();
    }

    /** Returns the errors of this thread since they were forgotten, in one line. */
    String takeErrors() {
        String text = String.join("; ", errors.get());
        errors.remove();
        return text.isEmpty() ? "TensorRT gave no reason" : text;
    }
}
