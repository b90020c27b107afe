package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * Pull parser of a JSON text in native memory. Confined to the thread that reads a request.
 *
 * <p>It reads the bytes in place and allocates no objects. It accepts the extensions of the reference server: the bare
 * words {@code NaN}, {@code Inf} and {@code Infinity}, strings of any bytes, any depth of nesting, a byte order mark,
 * and a zero byte as the end. Syntax errors carry the texts and offsets of the reference server.
 *
 * <p>Reading starts with {@link #begin} and proceeds a value at a time; skipped values are valid and may be read again
 * after {@link #moveTo}, except for values of {@link #skipNumbers}.
 */
public final class JsonReader {
    private static final int STACK_WORD = 64;

    private final MemorySegment text;
    private final JsonWindow window;
    private final int end;
    private int at;
    private int keyStart;
    private int keyEnd;
    /** The open brackets around {@link #at} while a value is skipped. There is one bit for each, set for objects. */
    private long[] stack = new long[1];

    private final JsonNumber skipped = new JsonNumber();
    private final JsonPath path = new JsonPath();

    /** Creates a reader at the start of a text of at most {@link Integer#MAX_VALUE} bytes. */
    public JsonReader(MemorySegment text) {
        this.text = text;
        this.window = new JsonWindow(text);
        this.end = window.end();
    }

    /** Returns the path of the current member, for errors. */
    public JsonPath path() {
        return path;
    }

    /** Describes the value at the current position, for errors. */
    public String describeValue() {
        return JsonErrors.describe(text, at);
    }

    /** Moves to the first value; a text without one is an error. */
    public void begin() {
        for (int mark : new int[] {0xEF, 0xBB, 0xBF}) {
            if (peek() == (byte) mark) {
                at++;
            }
        }
        skipSpace();
        if (peek() == JsonWindow.END) {
            throw syntaxError("The document is empty.", at);
        }
    }

    /** Checks that nothing follows the value. */
    public void finish() {
        skipSpace();
        if (peek() != JsonWindow.END) {
            throw syntaxError("The document root must not be followed by other values.", at);
        }
    }

    int remaining() {
        return end - at;
    }

    /** Returns the offset of the next byte. */
    public int position() {
        return at;
    }

    /** Continues at an offset that was read before. */
    public void moveTo(int position) {
        at = position;
    }

    /** Returns the next byte without reading it, or {@link JsonWindow#END}. */
    public byte peek() {
        return window.get(at);
    }

    byte take() {
        byte next = peek();
        at++;
        return next;
    }

    void skipSpace() {
        for (byte next = peek(); next == ' ' || next == '\n' || next == '\r' || next == '\t'; next = peek()) {
            at++;
        }
    }

    /** Reads a {@code '{'} and the first key with its colon, or the <code>'}'</code> of an empty object. */
    public boolean firstMember() {
        at++;
        skipSpace();
        if (peek() == '}') {
            at++;
            return false;
        }
        readKey();
        return true;
    }

    /** Moves from a member's value to the next key: reads the comma and the key with its colon, or the object's end. */
    public boolean nextMember() {
        skipSpace();
        return switch (peek()) {
            case ',' -> {
                at++;
                skipSpace();
                readKey();
                yield true;
            }
            case '}' -> {
                at++;
                yield false;
            }
            default -> throw syntaxError("Missing a comma or '}' after an object member.", at);
        };
    }

    /** Returns whether the last key is this name, which needs no escapes. */
    public boolean keyIs(String name) {
        int length = name.length();
        if (keyEnd - keyStart != length) {
            return keyEnd - keyStart > length && JsonStrings.hasEscape(text, keyStart, keyEnd) && name.equals(key());
        }
        return window.holds(keyStart, name);
    }

    public String key() {
        return string(keyStart, keyEnd);
    }

    /** Reads a {@code '['} and returns whether an element follows; if none does, reads the {@code ']'} too. */
    public boolean firstElement() {
        at++;
        skipSpace();
        if (peek() == ']') {
            at++;
            return false;
        }
        return true;
    }

    /** Moves from an element to the next one; returns whether it read a comma, and not the end of the array. */
    public boolean nextElement() {
        skipSpace();
        return switch (peek()) {
            case ',' -> {
                at++;
                skipSpace();
                yield true;
            }
            case ']' -> {
                at++;
                yield false;
            }
            default -> throw syntaxError("Missing a comma or ']' after an array element.", at);
        };
    }

    /** Skips a string and returns the offset of its closing quote. */
    int skipString() {
        at++;
        for (; ; ) {
            at = window.skipPlain(at);
            byte next = peek();
            if (next == '"') {
                return at++;
            } else if (next == '\\') {
                at = JsonStrings.checkEscape(text, at, end);
            } else if (next >= 0 && next < ' ') {
                throw syntaxError(
                        next == JsonWindow.END
                                ? "Missing a closing quotation mark in string."
                                : "Invalid encoding in string.",
                        at);
            } else {
                at++;
            }
        }
    }

    /** Reads a number; returns {@code false} if there is none. */
    public boolean readNumber(JsonNumber number) {
        byte next = peek();
        if (next != '-' && next != 'I' && next != 'N' && (next < '0' || next > '9')) {
            return false;
        }
        at = number.read(window, at);
        return true;
    }

    /** Receives the numbers of an array. */
    @FunctionalInterface
    interface NumberTarget {
        void put(JsonNumber number, long index);
    }

    /**
     * Reads plain numbers and the commas behind them. Stops at a number that is not followed by another element.
     *
     * @param number holds the current number
     * @param target receives each number
     * @param from the index of the first element
     * @param expected the index at which to stop
     * @return the index of the next element
     */
    long readPlainElements(JsonNumber number, NumberTarget target, long from, long expected) {
        long element = from;
        while (at < end && element < expected) {
            int index = window.indexOf(at);
            byte[] bytes = window.array();
            int last = window.lastStart();
            do {
                int comma = DigitChunk.findComma(bytes, index);
                if (bytes[comma] != ',' || number.readPlain(bytes, index) != comma) {
                    at = window.offsetOf(index);
                    return element;
                }
                target.put(number, element++);
                index = bytes[comma + 1] == ' ' ? comma + 2 : comma + 1;
            } while (index < last && element < expected);
            at = window.offsetOf(index);
        }
        return element;
    }

    /** Skips plain numbers as long as each is followed by another element. */
    private void skipPlainElements() {
        while (at < end) {
            int index = window.indexOf(at);
            byte[] bytes = window.array();
            int last = window.lastStart();
            do {
                int comma = DigitChunk.findComma(bytes, index);
                if (bytes[comma] != ',' || JsonNumber.skipPlain(bytes, index) != comma) {
                    at = window.offsetOf(index);
                    skipSpace();
                    return;
                }
                index = bytes[comma + 1] == ' ' ? comma + 2 : comma + 1;
            } while (index < last);
            at = window.offsetOf(index);
        }
    }

    /**
     * Skips a nested array of numbers without checking them. Each of them must be read later by {@link JsonElements},
     * or checked by {@link #skipValue}.
     *
     * @return {@code false} if there is no array, or one with other elements; then nothing was skipped
     */
    public boolean skipNumbers() {
        if (peek() != '[') {
            return false;
        }
        int depth = 0;
        for (int index = at; index < end; index = DigitChunk.findBracket(text, index + 1)) {
            switch (text.get(ValueLayout.JAVA_BYTE, index)) {
                case '[' -> depth++;
                case ']' -> depth--;
                default -> {
                    return false;
                }
            }
            if (depth == 0) {
                at = index + 1;
                return true;
            }
        }
        return false;
    }

    /** Skips a value of any kind and depth, and checks it. */
    public void skipValue() {
        int depth = 0;
        for (; ; ) {
            byte next = peek();
            if (next == '{' && firstMember()) {
                push(depth++, true);
                continue;
            } else if (next == '[' && firstElement()) {
                push(depth++, false);
                skipPlainElements();
                continue;
            } else if (next != '{' && next != '[') {
                skipScalar(next);
            }
            while (depth > 0 && !(isObject(depth - 1) ? nextMember() : nextElement())) {
                depth--;
            }
            if (depth == 0) {
                return;
            }
            if (!isObject(depth - 1)) {
                skipPlainElements();
            }
        }
    }

    /** Reads a string and returns its unescaped length in bytes. */
    int readStringLength() {
        int from = at + 1;
        return JsonStrings.length(text, from, skipString());
    }

    /** Reads a string into memory and returns the offset after its bytes there. */
    long readString(MemorySegment target, long offset) {
        int from = at + 1;
        return JsonStrings.copy(text, from, skipString(), target, offset);
    }

    /** Reads a string as text; bytes that are not UTF-8 become replacement characters. */
    public String readString() {
        int from = at + 1;
        return string(from, skipString());
    }

    private String string(int start, int end) {
        String plain = window.plainString(start, end);
        return plain == null ? JsonStrings.decode(text, start, end) : plain;
    }

    private void readKey() {
        if (peek() != '"') {
            throw syntaxError("Missing a name for object member.", at);
        }
        keyStart = at + 1;
        keyEnd = skipString();
        skipSpace();
        if (peek() != ':') {
            throw syntaxError("Missing a colon after a name of object member.", at);
        }
        at++;
        skipSpace();
    }

    private void skipScalar(byte first) {
        switch (first) {
            case '"' -> skipString();
            case 't' -> skipWord("true");
            case 'f' -> skipWord("false");
            case 'n' -> skipWord("null");
            default -> {
                at = skipped.read(window, at);
                skipped.checkRange();
            }
        }
    }

    private void skipWord(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (peek() != word.charAt(i)) {
                throw syntaxError("Invalid value.", at);
            }
            at++;
        }
    }

    private void push(int depth, boolean object) {
        int word = depth / STACK_WORD;
        if (word == stack.length) {
            stack = Arrays.copyOf(stack, 2 * stack.length);
        }
        long bit = 1L << depth;
        stack[word] = object ? stack[word] | bit : stack[word] & ~bit;
    }

    private boolean isObject(int depth) {
        return (stack[depth / STACK_WORD] & 1L << depth) != 0;
    }

    private InferenceException syntaxError(String problem, int position) {
        return JsonErrors.syntax(problem, position, text);
    }
}
