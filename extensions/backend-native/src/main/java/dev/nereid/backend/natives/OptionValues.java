package dev.nereid.backend.natives;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Parameters;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads options as the reference server does, with the texts of its errors. Immutable.
 *
 * @param values the options by name, which word the end of each error
 */
public record OptionValues(Parameters values) {
    private static final Pattern NUMBER = Pattern.compile("\\s*([+-]?\\d+)");

    /**
     * Returns the whole number at the beginning of the value, read as on the reference server; empty if not given.
     *
     * @throws BackendException if the value begins with no number, or with one beyond 32 bits
     */
    public OptionalInt number(String name) {
        Optional<String> value = values.text(name);
        if (value.isEmpty()) {
            return OptionalInt.empty();
        }
        String text = value.get();
        Matcher matcher = NUMBER.matcher(text);
        try {
            if (matcher.lookingAt()) {
                return OptionalInt.of(Integer.parseInt(matcher.group(1)));
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw refused("failed to convert '" + text + "' to integral number", name, "a whole number");
    }

    /**
     * Returns a truth value, if given, in the words of the reference server: {@code 1}, {@code true}, {@code on} or
     * {@code 0}, {@code false}, {@code off}, in upper or lower case.
     *
     * @throws BackendException if the value is another word
     */
    public Optional<Boolean> truth(String name) {
        return values.text(name).map(text -> switch (text.toLowerCase(Locale.ROOT)) {
            case "1", "true", "on" -> true;
            case "0", "false", "off" -> false;
            default -> throw refused("failed to convert '" + text + "' to boolean", name, "true or false");
        });
    }

    /**
     * Returns an exception, of {@link ErrorCode#INVALID_ARGUMENT}, about the value of an option. Its message begins
     * with {@code text}, in the words of the reference server; {@code expected} says what the value may be.
     */
    public BackendException refused(String text, String name, String expected) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT, text + "; " + values.label(name) + " (expected: " + expected + ")");
    }
}
