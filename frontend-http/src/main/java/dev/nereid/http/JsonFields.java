package dev.nereid.http;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;

/**
 * The values of members that a {@link JsonReader} passed over, by their offsets. Immutable.
 *
 * <p>Wrong types are reported in the words that clients know, and as errors of kind {@link ErrorCode#INTERNAL}, as they
 * are used to.
 */
final class JsonFields {
    /** The offset of a member that an object does not have. */
    static final int ABSENT = -1;

    private JsonFields() {}

    /** Reads past a whole text, checking it, and returns the offset of its only value. */
    static int root(JsonReader json) {
        json.begin();
        int root = json.position();
        json.skipValue();
        json.finish();
        return root;
    }

    /** Checks a whole text. */
    static void check(JsonReader json) {
        json.moveTo(0);
        root(json);
    }

    /** Finds a member of an object by name, as {@link #find(JsonReader, int, String[], int[])} does. */
    static int find(JsonReader json, int at, String name) {
        int[] offset = new int[1];
        find(json, at, new String[] {name}, offset);
        return offset[0];
    }

    /** Returns the text of a member that must be a string. */
    static String string(JsonReader json, int at, String name) {
        require(json, at, name);
        json.moveTo(at);
        if (json.peek() != '"') {
            throw unparsable(json, name, JsonMistakes.NOT_STRING);
        }
        return json.readString();
    }

    /**
     * Finds members of an object by name; of several with one name, the first counts.
     *
     * @param json a text that was passed over
     * @param at the offset of a value, or {@link #ABSENT}; anything but an object has no members
     * @param names the names
     * @param offsets filled with the offset of each value, or {@link #ABSENT}
     */
    static void find(JsonReader json, int at, String[] names, int[] offsets) {
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

    /** Moves into a member that must be an array; says whether it has elements, as {@link JsonReader#firstElement}. */
    static boolean enterArray(JsonReader json, int at, String name) {
        require(json, at, name);
        json.moveTo(at);
        if (json.peek() != '[') {
            throw unparsable(json, name, JsonMistakes.NOT_ARRAY);
        }
        return json.firstElement();
    }

    /** Returns the value of a member that must be true or false. */
    static boolean bool(JsonReader json, int at, String name) {
        json.moveTo(at);
        byte first = json.peek();
        if (first != 't' && first != 'f') {
            throw unparsable(json, name, JsonMistakes.NOT_BOOLEAN);
        }
        return first == 't';
    }

    /** Reads the unsigned 64-bit number that the reader stands at, which belongs to a member. */
    static long readUnsigned(JsonReader json, JsonNumber number, String name) {
        return readUnsigned(json, number, name, ABSENT);
    }

    /** Reads an unsigned 64-bit number, which is an element of a member. */
    static long readUnsigned(JsonReader json, JsonNumber number, String name, int index) {
        int at = json.position();
        if (!json.readNumber(number) || !number.isUnsigned()) {
            json.moveTo(at);
            String path = json.place().path(name) + (index == ABSENT ? "" : "[" + index + "]");
            throw JsonMistakes.value(
                    "Unable to parse '" + name + "': " + JsonMistakes.NOT_UNSIGNED,
                    path,
                    JsonMistakes.expectedInstead(JsonMistakes.NOT_UNSIGNED),
                    json.describeValue());
        }
        return number.bits();
    }

    /**
     * Decodes the string that the reader stands at, line breaks and blanks included.
     *
     * @throws IllegalArgumentException if it ends in the middle of a byte
     */
    static ByteBuffer readBase64(JsonReader json) {
        int at = json.position();
        byte[] text = new byte[json.readStringLength()];
        json.moveTo(at);
        json.readString(MemorySegment.ofArray(text), 0);
        return ByteBuffer.wrap(Base64.getMimeDecoder().decode(text));
    }

    /** Returns the error of a member whose value, which the reader stands at, has the wrong type. */
    static InferenceException unparsable(JsonReader json, String name, String problem) {
        return JsonMistakes.value(
                "Unable to parse '" + name + "': " + problem,
                json.place().path(name),
                JsonMistakes.expectedInstead(problem),
                json.describeValue());
    }

    static InferenceException internal(String message) {
        return new InferenceException(ErrorCode.INTERNAL, message);
    }

    static InferenceException invalid(String message) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, message);
    }

    private static void require(JsonReader json, int at, String name) {
        if (at == ABSENT) {
            throw JsonMistakes.value(
                    "Unable to parse '" + name + "': attempt to access non-existing object member '" + name + "'",
                    json.place().path(name),
                    name.equals("inputs") || name.equals("shape") ? "an array" : "a string",
                    "nothing");
        }
    }
}
