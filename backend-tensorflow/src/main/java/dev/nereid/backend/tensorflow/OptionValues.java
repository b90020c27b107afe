package dev.nereid.backend.tensorflow;

import dev.nereid.spi.BackendException;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Parses options that are given as text. Immutable.
 *
 * @param values the options by name
 * @param where the owner of the options, as a prefix of messages: empty, or ending in a blank
 */
record OptionValues(Map<String, String> values, String where) {
    private static final Pattern NUMBER = Pattern.compile("\\s*([+-]?\\d+)");

    OptionValues {
        values = Map.copyOf(values);
    }

    /**
     * Returns the whole number at the beginning of the value. The reference server reads it the same way; empty if the
     * option is not given.
     */
    OptionalInt number(String name) {
        String text = values.get(name);
        if (text == null) {
            return OptionalInt.empty();
        }
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
        String text = values.get(name);
        if (text == null) {
            return Optional.empty();
        }
        return switch (text.toLowerCase(Locale.ROOT)) {
            case "1", "true", "on" -> Optional.of(true);
            case "0", "false", "off" -> Optional.of(false);
            default -> throw refused("failed to convert '" + text + "' to boolean", name, "true or false");
        };
    }

    /** Returns an exception about the value of an option. Its message begins with the text of the reference server. */
    BackendException refused(String text, String name, String expected) {
        return TensorFlowErrors.invalid(text + "; " + where + name + " (expected: " + expected + ")");
    }

    /** Returns an exception about the value of an option. */
    BackendException refused(String name, String expected) {
        return TensorFlowErrors.invalid(where + name + ": '" + values.get(name) + "' (expected: " + expected + ")");
    }
}
