package dev.nereid.api;

import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.nio.charset.StandardCharsets;

/** The limit of sequence ids that are texts. Static functions only. */
public final class SequenceIds {
    /** In bytes, as the reference server counts characters. */
    public static final int MAX_TEXT_BYTES = 128;

    /** The maximum of bytes for a char in UTF-8. */
    private static final int CHAR_BYTES = 3;

    private SequenceIds() {}

    /**
     * Checks the length of an id.
     *
     * @param id the id, as a client gives it
     * @throws InferenceException {@link ErrorCode#UNSUPPORTED} if the text is too long
     */
    public static void check(Sequence.Id id) {
        if (id instanceof Sequence.Id.Text(String text) && isTooLong(text)) {
            throw new InferenceException(
                    ErrorCode.UNSUPPORTED,
                    "string correlation ID cannot be longer than " + MAX_TEXT_BYTES + " characters");
        }
    }

    private static boolean isTooLong(String text) {
        return text.length() > MAX_TEXT_BYTES
                || (text.length() > MAX_TEXT_BYTES / CHAR_BYTES
                        && text.getBytes(StandardCharsets.UTF_8).length > MAX_TEXT_BYTES);
    }
}
