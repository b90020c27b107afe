package dev.nereid.backend.pytorch.presets;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A failure of PyTorch, or an exception of a script. Its message is PyTorch's own, without frames of C++. */
public final class TorchException extends Exception {
    private static final long serialVersionUID = 1;

    /** Precedes the frames of C++ in a message, or is the first of them. */
    private static final Pattern FRAMES = Pattern.compile("\n(?:Exception raised from |frame #0: )");

    private TorchException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Converts what JavaCPP throws for an exception of C++. */
    static TorchException of(RuntimeException failure) {
        String text = String.valueOf(failure.getMessage());
        Matcher frames = FRAMES.matcher(text);
        return new TorchException((frames.find() ? text.substring(0, frames.start()) : text).stripTrailing(), failure);
    }
}
