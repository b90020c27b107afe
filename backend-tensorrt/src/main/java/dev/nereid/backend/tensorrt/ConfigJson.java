package dev.nereid.backend.tensorrt;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the configuration as JSON: objects as maps, arrays as lists, the rest as texts. Static functions only. */
final class ConfigJson {
    private static final JsonFactory JSON = new JsonFactory();

    private ConfigJson() {}

    /** Parses a configuration of the server, which is correct JSON. */
    static Map<String, Object> parse(String json) {
        try (JsonParser parser = JSON.createParser(json)) {
            parser.nextToken();
            return object(parser);
        } catch (IOException e) {
            throw new IllegalArgumentException("json: " + e.getMessage(), e);
        }
    }

    /** Returns the object at a path; empty if there is none. */
    @SuppressWarnings("unchecked") // objects are read as maps of this type alone
    static Map<String, Object> object(Map<String, Object> root, String... path) {
        Map<String, Object> found = root;
        for (String name : path) {
            Object next = found.get(name);
            found = next instanceof Map<?, ?> map ? (Map<String, Object>) map : Map.of();
        }
        return found;
    }

    /** Returns a text; another one if there is none. */
    static String text(Map<String, Object> object, String name, String otherwise) {
        return object.get(name) instanceof String text ? text : otherwise;
    }

    private static Map<String, Object> object(JsonParser parser) throws IOException {
        Map<String, Object> object = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            parser.nextToken();
            Object value = value(parser);
            if (value != null) {
                object.put(name, value);
            }
        }
        return object;
    }

    private static @Nullable Object value(JsonParser parser) throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> object(parser);
            case START_ARRAY -> {
                List<Object> array = new ArrayList<>();
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    Object element = value(parser);
                    if (element != null) {
                        array.add(element);
                    }
                }
                yield array;
            }
            case VALUE_NULL -> null;
            default -> parser.getText();
        };
    }
}
