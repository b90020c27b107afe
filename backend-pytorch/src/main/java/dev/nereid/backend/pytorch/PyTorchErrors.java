package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.ModelPaths;
import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Converts failures of PyTorch to exceptions of the SPI. Stateless. */
final class PyTorchErrors {
    /** In UTF-8, so that a message of 4 KiB has room for a few words before and behind. */
    private static final int MAX_BYTES = 3500;

    private static final String CUT = "\n…\n";

    /** Heading of the places in the saved code; the places in the original source follow. */
    private static final String SERIALIZED = "Traceback of TorchScript, serialized code";

    private static final String ORIGINAL = "Traceback of TorchScript, original code";
    private static final String SIMILAR = "not be currently supported in TorchScript.";
    private static final Pattern UNKNOWN_OPERATOR = Pattern.compile("Unknown builtin op: ([\\w.]+)::(\\w+)");

    private PyTorchErrors() {}

    static BackendException ofExecution(TorchException failure) {
        return new BackendException(
                ErrorCode.INTERNAL, "PyTorch execute failure: " + text(String.valueOf(failure.getMessage())));
    }

    static BackendException ofLoad(ModelContext context, TorchException failure) {
        String model = context.settings().name();
        String text = ModelPaths.publicText(context, text(String.valueOf(failure.getMessage())));
        Matcher operator = UNKNOWN_OPERATOR.matcher(text);
        if (operator.find()) { // before the places, which are long
            int end = text.indexOf(SIMILAR);
            int place = end < 0 ? text.length() : end + SIMILAR.length();
            String cure = "\n" + cure(operator.group(1), operator.group(2)) + "\n";
            text = text.substring(0, place) + cure + text.substring(place);
        }
        return cannotLoad(model, text);
    }

    private static String cure(String namespace, String operator) {
        return "The operator " + namespace + "::" + operator + " is not part of PyTorch"
                + (namespace.equals("torchvision") ? ", but of torchvision, whose operators are not there" : "")
                + " (expected: a script without it, such as one whose last step runs in the client or in a model of the"
                + " backend python; or model.onnx, as torch.onnx.export writes it, with the backend onnxruntime)";
    }

    static BackendException cannotLoad(String model, String reason) {
        return new BackendException(ErrorCode.INTERNAL, text("failed to load model '" + model + "': " + reason));
    }

    /** Returns an exception about a model or its configuration. */
    static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, text(message));
    }

    /** Returns an exception about a model, in a place where the reference server uses this code. */
    static BackendException internal(String message) {
        return new BackendException(ErrorCode.INTERNAL, text(message));
    }

    /** Shortens a text: first the places in the saved code, then the lines between the first and the last ones. */
    static String text(String message) {
        if (message.getBytes(StandardCharsets.UTF_8).length <= MAX_BYTES) {
            return message;
        }
        int cutStart = message.indexOf(SERIALIZED);
        int cutEnd = message.indexOf(ORIGINAL);
        String shorter = cutStart >= 0 && cutEnd > cutStart
                ? message.substring(0, cutStart) + message.substring(cutEnd)
                : message;
        byte[] bytes = shorter.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= MAX_BYTES) {
            return shorter;
        }
        int half = (MAX_BYTES - CUT.getBytes(StandardCharsets.UTF_8).length) / 2;
        int end = half;
        while (isWithinCharacter(bytes[end])) {
            end--;
        }
        int begin = bytes.length - half;
        while (begin < bytes.length && isWithinCharacter(bytes[begin])) {
            begin++;
        }
        return new String(bytes, 0, end, StandardCharsets.UTF_8)
                + CUT
                + new String(bytes, begin, bytes.length - begin, StandardCharsets.UTF_8);
    }

    /** Returns whether a byte of UTF-8 belongs to a character that begins before it. */
    private static boolean isWithinCharacter(byte value) {
        return (value & 0xC0) == 0x80;
    }
}
