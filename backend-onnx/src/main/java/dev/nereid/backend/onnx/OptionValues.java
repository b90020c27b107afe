package dev.nereid.backend.onnx;

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
record OptionValues(Parameters values) {
    private static final Pattern NUMBER = Pattern.compile("\\s*([+-]?\\d+)");

    /**
     * Returns the whole number at the beginning of the value. The reference server reads it the same way; empty if the
     * option is not given.
     */
    OptionalInt number(String name) {
        Optional<String> given = values.text(name);
        if (given.isEmpty()) {
            return OptionalInt.empty();
        }
        String text = given.get();
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

    /** Returns a truth value, in the words of the reference server. It is empty if the option is not given. */
    Optional<Boolean> truth(String name) {
        return values.text(name).map(text -> switch (text.toLowerCase(Locale.ROOT)) {
            case "1", "true", "on" -> true;
            case "0", "false", "off" -> false;
            default -> throw refused("failed to convert '" + text + "' to boolean", name, "true or false");
        });
    }

    /** Returns an exception about the value of an option. Its message begins with the text of the reference server. */
    BackendException refused(String text, String name, String expected) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT, text + "; " + values.label(name) + " (expected: " + expected + ")");
    }
}
