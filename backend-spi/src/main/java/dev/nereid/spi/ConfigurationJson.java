package dev.nereid.spi;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Parses a configuration, and finds fields by their paths. Confined to one call. */
final class ConfigurationJson {
    private static final int HEXADECIMAL = 16;
    private static final int DIGITS_OF_A_CHARACTER = 4;

    private final String json;
    private int at;

    private ConfigurationJson(String json) {
        this.json = json;
    }

    /** A value that is not {@code null}. Immutable. */
    sealed interface Value {
        /** Returns a plain value as it is, and any other as JSON. */
        String text();
    }

    /** A text, number or truth value. */
    private record Plain(String text) implements Value {}

    /** The fields of a message, or the entries of a map. */
    private record Fields(Map<String, Value> values, String text) implements Value {}

    /** The elements of a repeated field. */
    private record Elements(List<Value> values, String text) implements Value {}

    /** Finds a field. Lists on the way need a number in the path. */
    static Optional<Value> find(String json, String path) {
        Optional<Value> found = parse(json);
        for (String step : path.split("\\.", -1)) {
            found = found.flatMap(value -> next(value, step));
        }
        return found;
    }

    private static Optional<Value> next(Value value, String step) {
        return switch (value) {
            case Fields fields -> Optional.ofNullable(fields.values().get(step));
            case Elements elements -> element(elements.values(), step);
            case Plain _ -> Optional.empty();
        };
    }

    private static Optional<Value> element(List<Value> values, String step) {
        try {
            int number = Integer.parseInt(step);
            return number >= 0 && number < values.size() ? Optional.of(values.get(number)) : Optional.empty();
        } catch (NumberFormatException _) { // the name of a field of the elements
            return Optional.empty();
        }
    }

    /** Finds all values of a field. A list on the way stands for its elements, and so does one at the end. */
    static List<String> findAll(String json, String path) {
        List<Value> found = new ArrayList<>(parse(json).stream().toList());
        for (String step : path.split("\\.", -1)) {
            List<Value> next = new ArrayList<>();
            for (Value value : found) {
                Optional<Value> direct = next(value, step);
                direct.ifPresent(next::add);
                if (direct.isEmpty() && value instanceof Elements elements) {
                    elements.values().forEach(element -> next(element, step).ifPresent(next::add));
                }
            }
            found = next;
        }
        return found.stream()
                .flatMap(value ->
                        value instanceof Elements elements ? elements.values().stream() : List.of(value).stream())
                .map(Value::text)
                .toList();
    }

    /** Returns the fields of a message, or the entries of a map. They are empty if there is none. */
    static Map<String, String> entries(String json, String path) {
        Map<String, String> entries = new LinkedHashMap<>();
        if (find(json, path).orElse(null) instanceof Fields fields) {
            fields.values().forEach((name, value) -> entries.put(name, value.text()));
        }
        return Collections.unmodifiableMap(entries);
    }

    private static Optional<Value> parse(String json) {
        ConfigurationJson parser = new ConfigurationJson(json);
        Optional<Value> value = parser.value();
        parser.skipSpace();
        if (parser.at < json.length()) {
            throw parser.unexpected("the end");
        }
        return value;
    }

    private Optional<Value> value() {
        skipSpace();
        int start = at;
        return switch (peek()) {
            case '{' -> {
                Map<String, Value> values = fields();
                yield Optional.of(new Fields(values, json.substring(start, at)));
            }
            case '[' -> {
                List<Value> values = elements();
                yield Optional.of(new Elements(values, json.substring(start, at)));
            }
            case '"' -> Optional.of(new Plain(string()));
            default -> word();
        };
    }

    private Map<String, Value> fields() {
        Map<String, Value> fields = new LinkedHashMap<>();
        at++;
        if (skips('}')) {
            return fields;
        }
        do {
            skipSpace();
            String name = string();
            if (!skips(':')) {
                throw unexpected("':'");
            }
            value().ifPresent(value -> fields.put(name, value));
        } while (skips(','));
        if (!skips('}')) {
            throw unexpected("',' or '}'");
        }
        return fields;
    }

    private List<Value> elements() {
        List<Value> elements = new ArrayList<>();
        at++;
        if (skips(']')) {
            return elements;
        }
        do {
            value().ifPresent(elements::add);
        } while (skips(','));
        if (!skips(']')) {
            throw unexpected("',' or ']'");
        }
        return elements;
    }

    /** Reads a number, {@code true} or {@code false}; empty for {@code null}. */
    private Optional<Value> word() {
        int start = at;
        while (at < json.length() && (Character.isLetterOrDigit(peek()) || "+-.".indexOf(peek()) >= 0)) {
            at++;
        }
        if (at == start) {
            throw unexpected("a value");
        }
        String word = json.substring(start, at);
        return word.equals("null") ? Optional.empty() : Optional.of(new Plain(word));
    }

    private String string() {
        if (peek() != '"') {
            throw unexpected("'\"'");
        }
        at++;
        StringBuilder text = new StringBuilder();
        while (peek() != '"') {
            char c = json.charAt(at++);
            text.append(c == '\\' ? escaped() : c);
        }
        at++;
        return text.toString();
    }

    private char escaped() {
        char c = peek();
        at++;
        return switch (c) {
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> {
                int end = at + DIGITS_OF_A_CHARACTER;
                if (end > json.length()) {
                    throw unexpected("four digits");
                }
                at = end;
                yield (char) Integer.parseInt(json, end - DIGITS_OF_A_CHARACTER, end, HEXADECIMAL);
            }
            default -> c;
        };
    }

    /** Skips space and a character; {@code false} if another one follows. */
    private boolean skips(char c) {
        skipSpace();
        if (at < json.length() && json.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void skipSpace() {
        while (at < json.length() && Character.isWhitespace(json.charAt(at))) {
            at++;
        }
    }

    private char peek() {
        if (at >= json.length()) {
            throw unexpected("more");
        }
        return json.charAt(at);
    }

    private IllegalArgumentException unexpected(String expected) {
        String found = at < json.length() ? "'" + json.charAt(at) + "'" : "the end";
        return new IllegalArgumentException(
                "json: " + found + " at character " + (at + 1) + " (expected: " + expected + ")");
    }
}
