package dev.nereid.backend.onnx;

import dev.nereid.spi.BackendException;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Reads options that are given as text. Immutable.
 *
 * @param values the options by name
 * @param where what the options belong to, as the beginning of messages: empty, or ending in a blank
 */
record OptionValues(Map<String, String> values, String where) {
    OptionValues {
        values = Map.copyOf(values);
    }

    /** Returns a whole number, 0 or more; empty if the option is not given. */
    OptionalInt number(String name) throws BackendException {
        String text = values.get(name);
        if (text == null) {
            return OptionalInt.empty();
        }
        try {
            int number = Integer.parseInt(text.strip());
            if (number >= 0) {
                return OptionalInt.of(number);
            }
        } catch (NumberFormatException e) {
            // said below
        }
        throw refused(name, "a whole number, 0 or more");
    }

    /** Returns a truth value, in the words of the reference server; empty if the option is not given. */
    Optional<Boolean> truth(String name) throws BackendException {
        String text = values.get(name);
        if (text == null) {
            return Optional.empty();
        }
        return switch (text.strip().toLowerCase(Locale.ROOT)) {
            case "1", "true", "on" -> Optional.of(true);
            case "0", "false", "off" -> Optional.of(false);
            default -> throw refused(name, "true or false");
        };
    }

    /** Returns what is wrong with the value of an option. */
    BackendException refused(String name, String expected) {
        return OnnxErrors.invalid(where + name + ": '" + values.get(name) + "' (expected: " + expected + ")");
    }
}
