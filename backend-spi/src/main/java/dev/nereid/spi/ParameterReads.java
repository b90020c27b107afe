package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Converts values of parameters, and words the errors. Static functions only. */
final class ParameterReads {
    /** The number of characters that errors quote of a value of a client. */
    private static final int MAX_QUOTED = 256;

    private ParameterReads() {}

    /** Parameters in a map. Immutable. */
    private record MapParameters(Map<String, Object> asMap) implements Parameters {
        @Override
        public Optional<Object> value(String name) {
            return Optional.ofNullable(asMap.get(name));
        }
    }

    /** Parameters with a common beginning of their names. Immutable as a view. */
    record Prefixed(Parameters all, String prefix) implements Parameters {
        Prefixed {
            requireNonNull(all, "all");
            requireNonNull(prefix, "prefix");
        }

        @Override
        public Optional<Object> value(String name) {
            return name.startsWith(prefix) ? all.value(name) : Optional.empty();
        }

        @Override
        public Map<String, Object> asMap() {
            Map<String, Object> selected = new LinkedHashMap<>();
            all.asMap().forEach((name, value) -> {
                if (name.startsWith(prefix)) {
                    selected.put(name, value);
                }
            });
            return Collections.unmodifiableMap(selected);
        }

        @Override
        public String label(String name) {
            return all.label(name);
        }
    }

    static Parameters of(Map<String, ?> values) {
        Map<String, Object> copy = new LinkedHashMap<>();
        values.forEach((name, value) -> copy.put(requireNonNull(name, "name"), checked(name, value)));
        return new MapParameters(Collections.unmodifiableMap(copy));
    }

    private static Object checked(String name, Object value) {
        return switch (requireNonNull(value, "value")) {
            case String text -> text;
            case Long integer -> integer;
            case Double number -> number;
            case Boolean flag -> flag;
            default ->
                throw new IllegalArgumentException("parameter '" + name + "': "
                        + value.getClass().getName() + " (expected: a String, Long, Double or Boolean)");
        };
    }

    static String text(Parameters from, String name, Object value) {
        if (value instanceof String text) {
            return text;
        }
        throw unexpected(from, name, value, "a text");
    }

    static String choice(Parameters from, String name, Object value, List<String> values) {
        if (value instanceof String text && values.contains(text)) {
            return text;
        }
        throw unexpected(from, name, value, "one of " + values);
    }

    static long integer(Parameters from, String name, Object value, long min, long max) {
        long integer = switch (value) {
            case Long parsed -> parsed;
            case String text -> integer(from, name, text, min, max);
            default -> throw unexpected(from, name, value, "an integer, " + min + " to " + max);
        };
        if (integer < min || integer > max) {
            throw unexpected(from, name, value, min + " to " + max);
        }
        return integer;
    }

    private static long integer(Parameters from, String name, String text, long min, long max) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) { // or more digits than fit
            throw unexpected(from, name, text, "an integer, " + min + " to " + max);
        }
    }

    static double number(Parameters from, String name, Object value, double min, double max) {
        double number = switch (value) {
            case Long integer -> integer;
            case Double parsed -> parsed;
            case String text -> number(from, name, text, min, max);
            default -> throw unexpected(from, name, value, "a number, " + bound(min) + " to " + bound(max));
        };
        if (number >= min && number <= max) {
            return number;
        }
        throw unexpected(from, name, value, bound(min) + " to " + bound(max)); // NaN too
    }

    private static String bound(double number) {
        return number == (int) number ? Integer.toString((int) number) : Double.toString(number);
    }

    private static double number(Parameters from, String name, String text, double min, double max) {
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException _) {
            throw unexpected(from, name, text, "a number, " + bound(min) + " to " + bound(max));
        }
    }

    static boolean flag(Parameters from, String name, Object value) {
        return switch (value) {
            case Boolean flag -> flag;
            case String text when text.equals("true") -> true;
            case String text when text.equals("false") -> false;
            default -> throw unexpected(from, name, value, "true or false");
        };
    }

    static BackendException missing(Parameters from, String name) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT, from.label(name) + ": missing (expected: a value for it)");
    }

    static BackendException unexpected(Parameters from, String name, Object value, String expected) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                from.label(name) + ": " + quoted(value.toString()) + " (expected: " + expected + ")");
    }

    /** Returns a value as errors quote it: of a long one the beginning. */
    private static String quoted(String value) {
        if (value.length() <= MAX_QUOTED) {
            return value;
        }
        int end = Character.isHighSurrogate(value.charAt(MAX_QUOTED - 1)) ? MAX_QUOTED - 1 : MAX_QUOTED;
        return value.substring(0, end) + "…";
    }
}
