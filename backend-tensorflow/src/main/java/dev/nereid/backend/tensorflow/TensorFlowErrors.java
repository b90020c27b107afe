package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.TfException;
import dev.nereid.backend.tensorflow.graph.GraphException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.util.regex.Pattern;

/** Converts failures of TensorFlow to exceptions of the SPI. Stateless. */
final class TensorFlowErrors {
    /** The machine's name, in TensorFlow's text about an unknown operation. */
    private static final Pattern HOST = Pattern.compile(" in binary running on [^\\s.]+(\\.[^\\s.]+)*");

    /** Advice about building TensorFlow, places in its source, and the nodes of a graph, after the reason. */
    private static final Pattern ADVICE = Pattern.compile(
            "(?s)( Make sure the Op and Kernel are registered.*|\\n\\t \\[\\[.*|\\n.*|; For more details.*)");

    private TensorFlowErrors() {}

    /** Returns a failure of a run. It has TensorFlow's own text. */
    static BackendException of(TfException failure) {
        return new BackendException(ErrorCode.INTERNAL, "TensorFlow error " + failure.code() + ": " + reason(failure));
    }

    /** Returns why TensorFlow cannot load a model. */
    static BackendException cannotLoad(ModelContext context, TfException failure) {
        String model = context.settings().name();
        String text = reason(failure)
                .replace(
                        context.versionDirectory().toAbsolutePath().toString(),
                        model + "/" + context.settings().version())
                .replace(context.modelDirectory().toAbsolutePath().toString(), model);
        return cannotLoad(model, "TensorFlow error " + failure.code() + ": " + text);
    }

    /** Returns why files are no model. */
    static BackendException cannotLoad(ModelContext context, GraphException failure) {
        return cannotLoad(context.settings().name(), String.valueOf(failure.getMessage()));
    }

    /** Returns an exception about a model or its configuration. */
    static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }

    /** Returns an exception with a message that begins with the model's name. */
    static BackendException cannotLoad(String model, String message) {
        return invalid("unable to load model '" + model + "', " + message);
    }

    /** Returns the first line of a text of TensorFlow, without the name of the machine. */
    private static String reason(TfException failure) {
        String text = HOST.matcher(String.valueOf(failure.getMessage())).replaceFirst("");
        return ADVICE.matcher(text).replaceFirst("").strip();
    }
}
