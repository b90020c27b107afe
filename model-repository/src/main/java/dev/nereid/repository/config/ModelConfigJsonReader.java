package dev.nereid.repository.config;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.JsonFormat;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import inference.ModelConfig;
import java.io.IOException;
import java.io.StringReader;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads model configurations in protobuf's JSON format. Static functions only.
 *
 * <p>Strict: unknown fields are refused. Field names are in snake case or lower camel case, names of enum values in any
 * case. A single value in place of an array is its only element, as for the reference server.
 */
public final class ModelConfigJsonReader {
    private static final Pattern PLACE = Pattern.compile("at line \\d+ column \\d+");
    private static final String FIRST = "Invalid config override: ";

    private ModelConfigJsonReader() {}

    /**
     * Reads a configuration.
     *
     * @param json any text
     * @return the content of the text, nothing added
     * @throws InferenceException a {@linkplain InferenceException#isClientError client error} that names the mistake if
     *     the text is no configuration
     */
    public static ModelConfig read(String json) {
        return readWritten(json).config();
    }

    /**
     * Reads a configuration, and the fields that its owner wrote.
     *
     * @param json any text
     * @return the content of the text, nothing added
     * @throws InferenceException as {@link #read}
     */
    public static ModelConfigReader.Written readWritten(String json) {
        if (json.length() > ModelConfigReader.MAX_BYTES) {
            throw InferenceException.clientError(
                    FIRST + json.length() + " characters (expected: at most " + ModelConfigReader.MAX_BYTES + ")");
        }
        ModelConfig.Builder config = ModelConfig.newBuilder();
        try {
            JsonElement parsed = parse(json);
            if (!parsed.isJsonObject()) {
                throw InferenceException.clientError(FIRST + "no JSON object (expected: a model configuration)");
            }
            JsonObject object = parsed.getAsJsonObject();
            adapt(object, ModelConfig.getDescriptor());
            JsonFormat.parser().merge(object.toString(), config);
            return new ModelConfigReader.Written(config.build(), isWritten(object, "max_batch_size", "maxBatchSize"));
        } catch (InvalidProtocolBufferException e) {
            String problem = String.valueOf(e.getMessage());
            throw InferenceException.clientError(FIRST + Quoted.text(problem) + Placeholders.hint(problem));
        } catch (IOException | JsonParseException e) {
            Matcher place = PLACE.matcher(String.valueOf(e.getMessage()));
            throw InferenceException.clientError(FIRST + "not valid JSON"
                    + (place.find() ? " " + Quoted.text(place.group()) : "") + " (expected: a model configuration)"
                    + Placeholders.hint(json));
        }
    }

    /** Returns whether a member has a value. {@code null} is none. */
    private static boolean isWritten(JsonObject object, String name, String camelCase) {
        JsonElement value = object.has(name) ? object.get(name) : object.get(camelCase);
        return value != null && !value.isJsonNull();
    }

    /** Parses one JSON text, in which names of members may lack their quotes, as for the reference server. */
    private static JsonElement parse(String json) throws IOException {
        try {
            return parseStrictly(json);
        } catch (IOException | JsonParseException e) {
            String quoted = BareNames.quoted(json);
            if (quoted.equals(json)) {
                throw e;
            }
            try {
                return parseStrictly(quoted);
            } catch (IOException | JsonParseException alsoWithQuotes) {
                throw e; // which knows the places of the given text
            }
        }
    }

    /** Parses one JSON text, without the liberties that the parser takes by default. */
    private static JsonElement parseStrictly(String json) throws IOException {
        JsonReader reader = new JsonReader(new StringReader(json));
        reader.setStrictness(Strictness.STRICT);
        JsonElement parsed = JsonParser.parseReader(reader);
        if (reader.peek() != JsonToken.END_DOCUMENT) {
            throw new IOException("text after the end at " + reader.getPath());
        }
        return parsed;
    }

    /**
     * Writes the names of enum values in capitals, as they are declared, and arrays where fields are repeated. As deep as
     * configurations are.
     */
    private static void adapt(JsonObject message, Descriptor type) {
        Map<String, FieldDescriptor> fields = new HashMap<>();
        for (FieldDescriptor field : type.getFields()) {
            fields.put(field.getName(), field);
            fields.put(field.getJsonName(), field);
        }
        for (Map.Entry<String, JsonElement> member : message.entrySet()) {
            FieldDescriptor field = fields.get(member.getKey());
            if (field != null) {
                member.setValue(adapted(member.getValue(), field));
            }
        }
    }

    private static JsonElement adapted(JsonElement value, FieldDescriptor field) {
        if (field.isMapField()) {
            if (value.isJsonObject()) {
                FieldDescriptor entryValue = field.getMessageType().findFieldByName("value");
                for (Map.Entry<String, JsonElement> entry :
                        value.getAsJsonObject().entrySet()) {
                    entry.setValue(adaptedItem(entry.getValue(), entryValue));
                }
            }
            return value;
        }
        if (value.isJsonArray()) {
            JsonArray items = value.getAsJsonArray();
            for (int i = 0; i < items.size(); i++) {
                items.set(i, adaptedItem(items.get(i), field));
            }
            return value;
        }
        JsonElement item = adaptedItem(value, field);
        if (!field.isRepeated() || value.isJsonNull()) {
            return item;
        }
        JsonArray single = new JsonArray(1);
        single.add(item);
        return single;
    }

    private static JsonElement adaptedItem(JsonElement value, FieldDescriptor field) {
        if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE && value.isJsonObject()) {
            adapt(value.getAsJsonObject(), field.getMessageType());
        } else if (field.getJavaType() == FieldDescriptor.JavaType.ENUM
                && value.isJsonPrimitive()
                && value.getAsJsonPrimitive().isString()) {
            return new JsonPrimitive(value.getAsString().toUpperCase(Locale.ROOT));
        }
        return value;
    }

    /** Names of JSON members without quotes, which the JSON of protobuf's C++ library may have. Static functions only. */
    static final class BareNames {
        private BareNames() {}

        /** Writes bare names of members in quotes. Leaves everything else, texts included, as it is. */
        static String quoted(String json) {
            StringBuilder quoted = new StringBuilder(json.length() + 16);
            boolean mayBegin = false; // whether a name may begin here: behind { or a comma
            int at = 0;
            while (at < json.length()) {
                char next = json.charAt(at);
                int end = at + 1;
                if (next == '"') {
                    end = endOfText(json, at);
                } else if (mayBegin && isName(next)) {
                    end = endOfName(json, at);
                    if (isFollowedByColon(json, end)) {
                        quoted.append('"').append(json, at, end).append('"');
                        at = end;
                        mayBegin = false;
                        continue;
                    }
                }
                quoted.append(json, at, end);
                mayBegin = next == '{' || next == ',' || (mayBegin && Character.isWhitespace(next));
                at = end;
            }
            return quoted.toString();
        }

        private static int endOfText(String json, int start) {
            int at = start + 1;
            while (at < json.length() && json.charAt(at) != '"') {
                at += json.charAt(at) == '\\' ? 2 : 1;
            }
            return Math.min(at + 1, json.length());
        }

        private static int endOfName(String json, int start) {
            int at = start;
            while (at < json.length() && isName(json.charAt(at))) {
                at++;
            }
            return at;
        }

        private static boolean isName(char character) {
            return (character >= 'a' && character <= 'z')
                    || (character >= 'A' && character <= 'Z')
                    || (character >= '0' && character <= '9')
                    || character == '_';
        }

        private static boolean isFollowedByColon(String json, int end) {
            int at = end;
            while (at < json.length() && Character.isWhitespace(json.charAt(at))) {
                at++;
            }
            return at < json.length() && json.charAt(at) == ':';
        }
    }
}
