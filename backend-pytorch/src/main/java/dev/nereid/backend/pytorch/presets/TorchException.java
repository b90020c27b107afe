package dev.nereid.backend.pytorch.presets;

/** A failure of PyTorch, or an exception of a script. Its message is PyTorch's own, without frames of C++. */
public final class TorchException extends Exception {
    private static final long serialVersionUID = 1;

    /** Precedes the frames of C++ in a message. */
    private static final String FRAMES = "\nException raised from ";

    private TorchException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Converts what JavaCPP throws for an exception of C++. */
    static TorchException of(RuntimeException failure) {
        String text = String.valueOf(failure.getMessage());
        int frames = text.indexOf(FRAMES);
        return new TorchException((frames < 0 ? text : text.substring(0, frames)).stripTrailing(), failure);
    }
}
