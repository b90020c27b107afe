package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Reads a JSON text through a small array on the heap. Confined to the thread that reads a request. */
final class JsonWindow {
    /** The value at the end of the text. A zero byte within the text ends it too. */
    static final byte END = 0;

    static final JsonWindow EMPTY = new JsonWindow(MemorySegment.NULL);

    /** The number of bytes in the array that permit parsing a number there; fewer suffice if no more remain. */
    private static final int MAX_NUMBER_BYTES = 64;

    private static final int MAX_BYTES = 8192;
    /** Zeros behind the text. A number can therefore be read in chunks wherever the text may end. */
    private static final int MARGIN = DigitChunk.REACH + 1;

    private final MemorySegment text;
    private final int end;
    private byte[] bytes = {};
    private int start;
    private int length;

    /** Creates a window at the start of a text of at most {@link Integer#MAX_VALUE} bytes. */
    JsonWindow(MemorySegment text) {
        this.text = text;
        this.end = Math.toIntExact(text.byteSize());
    }

    /** Returns the offset of the text's end. */
    int end() {
        return end;
    }

    MemorySegment text() {
        return text;
    }

    /** Returns the byte at an offset, or {@link #END} from the end on. */
    byte get(int offset) {
        int index = offset - start;
        return index >= 0 && index < length ? bytes[index] : move(offset);
    }

    /** Returns the index of an offset in {@link #array()}, which holds the bytes behind it too. */
    int indexOf(int offset) {
        int index = offset - start;
        if (index < 0 || index > length - MAX_NUMBER_BYTES) {
            boolean complete = index >= 0 && start + length == end;
            if (!complete) {
                move(offset);
                return 0;
            }
        }
        return index;
    }

    /** Returns the index from which on {@link #indexOf} has to move the window. */
    int lastStart() {
        return start + length == end ? length : length - MAX_NUMBER_BYTES;
    }

    /** Returns the offset of an index of {@link #array()}. */
    int offsetOf(int index) {
        return start + index;
    }

    boolean holds(int offset, String ascii) {
        int index = offset - start;
        int size = ascii.length();
        if (index < 0 || index + size > length) {
            for (int i = 0; i < size; i++) {
                if (offset + i >= end || text.get(ValueLayout.JAVA_BYTE, offset + i) != ascii.charAt(i)) {
                    return false;
                }
            }
            return true;
        }
        for (int i = 0; i < size; i++) {
            if (bytes[index + i] != ascii.charAt(i)) {
                return false;
            }
        }
        return true;
    }

    /** Returns the offset of the next quote, backslash, control character, or first byte that is not in the array. */
    int skipPlain(int offset) {
        int index = offset - start;
        if (index < 0) {
            return offset;
        }
        for (; index < length; index++) {
            byte next = bytes[index];
            if (next == '"' || next == '\\' || (next >= 0 && next < ' ')) {
                break;
            }
        }
        return Math.max(offset, start + index);
    }

    /** Returns the string between two offsets; {@code null} if it is not wholly in the array, or has an escape. */
    @Nullable
    String plainString(int begin, int end) {
        int index = begin - start;
        if (index < 0 || end - start > length) {
            return null;
        }
        for (int i = index; i < end - start; i++) {
            if (bytes[i] == '\\') {
                return null;
            }
        }
        return new String(bytes, index, end - begin, StandardCharsets.UTF_8);
    }

    /** Returns the array, valid until another byte is read: {@link #length()} bytes of text, then zeros. */
    byte[] array() {
        return bytes;
    }

    /** Returns the number of text bytes in the array. */
    int length() {
        return length;
    }

    private byte move(int offset) {
        if (offset >= end) {
            return END;
        }
        if (bytes.length == 0) {
            bytes = new byte[Math.min(MAX_BYTES, end) + MARGIN];
        }
        start = offset;
        length = Math.min(bytes.length - MARGIN, end - offset);
        MemorySegment.copy(text, ValueLayout.JAVA_BYTE, start, bytes, 0, length);
        Arrays.fill(bytes, length, length + MARGIN, END);
        return bytes[0];
    }
}
