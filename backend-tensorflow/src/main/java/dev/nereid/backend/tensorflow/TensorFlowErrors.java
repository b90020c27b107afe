package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.natives.ModelPaths;
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

    static BackendException cannotLoad(ModelContext context, TfException failure) {
        String model = context.settings().name();
        String text = ModelPaths.publicText(context, reason(failure));
        return ModelErrors.cannotLoad(model, "TensorFlow error " + failure.code() + ": " + text);
    }

    /** Returns why files are no model. */
    static BackendException cannotLoad(ModelContext context, GraphException failure) {
        return ModelErrors.cannotLoad(context.settings().name(), String.valueOf(failure.getMessage()));
    }

    /** Returns the first line of a text of TensorFlow, without the name of the machine. */
    private static String reason(TfException failure) {
        String text = HOST.matcher(String.valueOf(failure.getMessage())).replaceFirst("");
        return ADVICE.matcher(text).replaceFirst("").strip();
    }
}
