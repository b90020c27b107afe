package dev.nereid.backend.pytorch.archive;

/** Says why a file is no module of TorchScript, and what to do. Its text has a bound, whatever the file contains. */
public final class TorchFileException extends Exception {
    static final int MAX_CHARACTERS = 1000;
    static final int MAX_NAME_CHARACTERS = 100;

    private static final long serialVersionUID = 1;

    TorchFileException(String message) {
        super(cut(message, MAX_CHARACTERS));
    }

    TorchFileException(String message, Throwable cause) {
        super(cut(message, MAX_CHARACTERS), cause);
    }

    /** Returns a name of the file as messages show it. */
    static String shortened(String name) {
        return cut(name, MAX_NAME_CHARACTERS);
    }

    private static String cut(String text, int maxCharacters) {
        if (text.length() <= maxCharacters) {
            return text;
        }
        int end = Character.isHighSurrogate(text.charAt(maxCharacters - 1)) ? maxCharacters - 1 : maxCharacters;
        return text.substring(0, end) + "…";
    }
}
