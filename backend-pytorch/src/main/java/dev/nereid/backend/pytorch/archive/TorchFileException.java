package dev.nereid.backend.pytorch.archive;

/** Says why a file is no module of TorchScript, and what to do. */
public final class TorchFileException extends Exception {
    private static final long serialVersionUID = 1;

    TorchFileException(String message) {
        super(message);
    }

    TorchFileException(String message, Throwable cause) {
        super(message, cause);
    }
}
