package dev.nereid.storage.s3;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads the JSON file of credentials of the reference server. Static functions only. */
final class CredentialFile {
    /** Reports a file with another form, without its content. Immutable. */
    static final class FormatException extends IOException {
        private static final long serialVersionUID = 1L;

        FormatException(String reason) {
            super(reason);
        }

        String reason() {
            return String.valueOf(getMessage());
        }
    }

    private CredentialFile() {}

    /**
     * Reads the entries of one kind of storage.
     *
     * @param kind the name of the kind at the outermost level
     * @return the texts of each entry by the entry's name, in the order of the file; empty if the kind is missing
     * @throws FormatException if the file has another form
     */
    static Map<String, Map<String, String>> read(byte[] json, String kind) throws IOException {
        try (JsonParser parser = new JsonFactory().createParser(json)) {
            Map<String, Map<String, String>> entries = new LinkedHashMap<>();
            require(parser.nextToken(), JsonToken.START_OBJECT, "the file");
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                boolean found = kind.equals(parser.currentName());
                JsonToken value = parser.nextToken();
                if (found) {
                    require(value, JsonToken.START_OBJECT, "\"" + kind + "\"");
                    readEntries(parser, kind, entries);
                } else {
                    parser.skipChildren();
                }
            }
            return entries;
        } catch (JsonParseException e) {
            throw new FormatException("not JSON in line " + e.getLocation().getLineNr());
        }
    }

    private static void readEntries(JsonParser parser, String kind, Map<String, Map<String, String>> entries)
            throws IOException {
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            String name = parser.currentName();
            require(parser.nextToken(), JsonToken.START_OBJECT, "each entry of \"" + kind + "\"");
            Map<String, String> fields = new HashMap<>();
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                String field = parser.currentName();
                require(parser.nextToken(), JsonToken.VALUE_STRING, "\"" + field + "\" (expected: a text)");
                fields.put(field, parser.getText());
            }
            entries.put(name, fields);
        }
    }

    private static void require(JsonToken found, JsonToken expected, String where) throws FormatException {
        if (found != expected) {
            throw new FormatException(where + " is no " + (expected == JsonToken.VALUE_STRING ? "text" : "object"));
        }
    }
}
