package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;

/**
 * Reads members of a JSON object by their offsets. Immutable.
 *
 * <p>Wrong types are reported with texts and code, {@link ErrorCode#INTERNAL}, of the reference server.
 */
public final class JsonFields {
    /** The offset of an absent member. */
    public static final int ABSENT = -1;

    private JsonFields() {}

    /** Checks a whole text, and returns the offset of its only value. */
    public static int root(JsonReader json) {
        json.begin();
        int root = json.position();
        json.skipValue();
        json.finish();
        return root;
    }

    public static void check(JsonReader json) {
        json.moveTo(0);
        root(json);
    }

    /** Finds a member of an object by name, as {@link #find(JsonReader, int, String[], int[])} does. */
    public static int find(JsonReader json, int at, String name) {
        int[] offset = new int[1];
        find(json, at, new String[] {name}, offset);
        return offset[0];
    }

    /** Returns the text of a member that must be a string. */
    public static String string(JsonReader json, int at, String name) {
        require(json, at, name);
        json.moveTo(at);
        if (json.peek() != '"') {
            throw unparsable(json, name, JsonErrors.NOT_STRING);
        }
        return json.readString();
    }

    /**
     * Finds members of an object by name; of several with one name, the first counts.
     *
     * @param json a text with checked syntax
     * @param at the offset of a value, or {@link #ABSENT}; anything but an object has no members
     * @param offsets filled with the offset of each value, or {@link #ABSENT}
     */
    public static void find(JsonReader json, int at, String[] names, int[] offsets) {
        Arrays.fill(offsets, ABSENT);
        if (at == ABSENT) {
            return;
        }
        json.moveTo(at);
        if (json.peek() != '{') {
            return;
        }
        for (boolean more = json.firstMember(); more; more = json.nextMember()) {
            for (int i = 0; i < names.length; i++) {
                if (offsets[i] == ABSENT && json.keyIs(names[i])) {
                    offsets[i] = json.position();
                    break;
                }
            }
            json.skipValue();
        }
    }

    /** Enters a member that must be an array; returns whether it has elements, as {@link JsonReader#firstElement}. */
    public static boolean enterArray(JsonReader json, int at, String name) {
        require(json, at, name);
        json.moveTo(at);
        if (json.peek() != '[') {
            throw unparsable(json, name, JsonErrors.NOT_ARRAY);
        }
        return json.firstElement();
    }

    /** Returns the value of a member that must be true or false. */
    public static boolean bool(JsonReader json, int at, String name) {
        json.moveTo(at);
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw unparsable(json, name, JsonErrors.NOT_BOOLEAN);
        }
        return first == 't';
    }

    /** Reads the unsigned 64-bit number of a member at the reader's position. */
    public static long readUnsigned(JsonReader json, JsonNumber number, String name) {
        return readUnsigned(json, number, name, ABSENT);
    }

    /** Reads an unsigned 64-bit number that is an element of a member. */
    public static long readUnsigned(JsonReader json, JsonNumber number, String name, int index) {
        int at = json.position();
        if (!json.readNumber(number) || !number.isUnsigned()) {
            json.moveTo(at);
            String path = json.path().to(name) + (index == ABSENT ? "" : "[" + index + "]");
            throw JsonErrors.value(
                    "Unable to parse '" + name + "': " + JsonErrors.NOT_UNSIGNED,
                    path,
                    JsonErrors.expectedFor(JsonErrors.NOT_UNSIGNED),
                    json.describeValue());
        }
        return number.bits();
    }

    /**
     * Decodes the string at the reader's position, which may contain line breaks and blanks.
     *
     * @throws IllegalArgumentException if it has other characters, or ends in the middle of a byte
     */
    public static ByteBuffer readBase64(JsonReader json) {
        int at = json.position();
        byte[] text = new byte[json.readStringLength()];
        json.moveTo(at);
        json.readString(MemorySegment.ofArray(text), 0);
        int length = 0;
        for (byte character : text) {
            if (character != ' ' && character != '\t' && character != '\r' && character != '\n') {
                text[length++] = character;
            }
        }
        return Base64.getDecoder().decode(ByteBuffer.wrap(text, 0, length));
    }

    /** Returns the error of a member with a value of the wrong type. The value is at the reader's position. */
    static InferenceException unparsable(JsonReader json, String name, String problem) {
        return JsonErrors.value(
                "Unable to parse '" + name + "': " + problem,
                json.path().to(name),
                JsonErrors.expectedFor(problem),
                json.describeValue());
    }

    public static InferenceException internal(String message) {
        return new InferenceException(ErrorCode.INTERNAL, message);
    }

    public static InferenceException invalid(String message) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, message);
    }

    private static void require(JsonReader json, int at, String name) {
        if (at == ABSENT) {
            throw JsonErrors.value(
                    "Unable to parse '" + name + "': attempt to access non-existing object member '" + name + "'",
                    json.path().to(name),
                    name.equals("inputs") || name.equals("shape") ? "an array" : "a string",
                    "nothing");
        }
    }
}
