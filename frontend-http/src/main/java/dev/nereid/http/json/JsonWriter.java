package dev.nereid.http.json;

import io.netty.buffer.Unpooled;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Writes a JSON text as bytes. Confined to one thread; an event loop reuses its writer for one response after another.
 *
 * <p>Strings may hold any bytes; only what JSON requires is escaped. Numbers have the fewest digits that keep their
 * value.
 */
public final class JsonWriter {
    private static final int INITIAL_SIZE = 1024;
    /** The maximum size of memory that is kept for the next response. */
    private static final int MAX_RETAINED_SIZE = 1 << 20;

    /** The maximum size of a text in one array. It is below the limit of every virtual machine. */
    private static final long MAX_SIZE = 1 << 30;

    private static final byte[] HEX = "0123456789ABCDEF".getBytes(StandardCharsets.US_ASCII);
    private static final int MAX_INTEGER_BYTES = 20;
    private static final int MAX_ESCAPE_BYTES = 6;

    private final long maxSize;
    /** Receives full chunks of the text, unless it is kept as a whole. */
    private final @Nullable JsonChunks chunks;

    private byte[] bytes = new byte[INITIAL_SIZE];
    private int size;
    private final StringBuilder number = new StringBuilder();
    private final JsonFloats floats = new JsonFloats();

    public JsonWriter() {
        this(MAX_SIZE);
    }

    JsonWriter(long maxSize) {
        this.maxSize = maxSize;
        this.chunks = null;
    }

    /** Creates the writer of one text in chunks; {@link #flush} must follow its last part. */
    public JsonWriter(JsonChunks chunks) {
        this.maxSize = MAX_SIZE;
        this.chunks = chunks;
    }

    public void clear() {
        size = 0;
        if (bytes.length > MAX_RETAINED_SIZE) {
            bytes = new byte[INITIAL_SIZE];
        }
    }

    public int size() {
        return size;
    }

    /** Returns the memory of the text, valid up to {@link #size()} and until the next write. */
    public byte[] array() {
        return bytes;
    }

    /** Transfers the text, of a size that cannot change, and clears this writer. A large text is not copied. */
    public Buffer take() {
        Buffer text;
        if (bytes.length > MAX_RETAINED_SIZE) {
            text = BufferInternal.buffer(Unpooled.wrappedBuffer(bytes, 0, size));
        } else {
            text = BufferInternal.buffer(Unpooled.wrappedBuffer(toByteArray()));
        }
        clear();
        return text;
    }

    /** Adds the current chunk, if the text is written in chunks. */
    public void flush() {
        if (chunks != null && size > 0) {
            chunks.add(bytes, size);
            bytes = new byte[0];
            size = 0;
        }
    }

    public byte[] toByteArray() {
        return Arrays.copyOf(bytes, size);
    }

    /** Writes ASCII characters without quotes or escapes. */
    public JsonWriter raw(String ascii) {
        int length = ascii.length();
        reserve(length);
        for (int i = 0; i < length; i++) {
            bytes[size + i] = (byte) ascii.charAt(i);
        }
        size += length;
        return this;
    }

    /** Writes bytes without quotes or escapes. */
    public JsonWriter raw(byte[] text) {
        reserve(text.length);
        System.arraycopy(text, 0, bytes, size, text.length);
        size += text.length;
        return this;
    }

    /** Writes an ASCII character without quotes or escapes. */
    public JsonWriter raw(char ascii) {
        reserve(1);
        bytes[size++] = (byte) ascii;
        return this;
    }

    /** Writes bytes without quotes or escapes. */
    public JsonWriter raw(MemorySegment data) {
        int length = (int) Math.min(data.byteSize(), Integer.MAX_VALUE);
        reserve(length);
        MemorySegment.copy(data, ValueLayout.JAVA_BYTE, 0, bytes, size, length);
        size += length;
        return this;
    }

    public JsonWriter string(String text) {
        int length = text.length();
        raw('"');
        for (int i = plain(text); i < length; i++) {
            char character = text.charAt(i);
            if (character >= 0x80) {
                byte[] rest = text.substring(i).getBytes(StandardCharsets.UTF_8);
                for (byte next : rest) {
                    character(next);
                }
                break;
            }
            character((byte) character);
        }
        return raw('"');
    }

    /** Writes the leading characters that need no escape, and returns their number. */
    private int plain(String text) {
        int length = text.length();
        reserve(length);
        int written = 0;
        for (; written < length; written++) {
            char character = text.charAt(written);
            if (character < ' ' || character >= 0x80 || character == '"' || character == '\\') {
                break;
            }
            bytes[size + written] = (byte) character;
        }
        size += written;
        return written;
    }

    JsonWriter string(MemorySegment data, long from, long length) {
        raw('"');
        for (long i = from; i < from + length; i++) {
            character(data.get(ValueLayout.JAVA_BYTE, i));
        }
        return raw('"');
    }

    public JsonWriter integer(long value) {
        reserve(MAX_INTEGER_BYTES);
        if (value < 0) {
            if (value == Long.MIN_VALUE) {
                return raw("-9223372036854775808");
            }
            bytes[size++] = '-';
        }
        return digits(Math.abs(value));
    }

    JsonWriter unsigned(long value) {
        if (value < 0) {
            return raw(Long.toUnsignedString(value));
        }
        reserve(MAX_INTEGER_BYTES);
        return digits(value);
    }

    /** Writes a number so that it reads back as the same float. */
    JsonWriter real(float value) {
        reserve(JsonDecimals.MAX_BYTES);
        size = floats.write(value, bytes, size);
        return this;
    }

    /** Writes numbers, with commas between them, so that they read back as the same floats. */
    JsonWriter reals(MemorySegment values) {
        int start = size;
        long count = values.byteSize() / Float.BYTES;
        for (long done = 0; done < count; ) {
            int next = (int) Math.min(JsonFloats.MAX_COUNT, count - done);
            int needed = next * JsonFloats.MAX_BYTES;
            if (chunks != null) {
                reserve(needed);
            } else if (bytes.length - size < needed) {
                // Space for all remaining numbers if they are as long as those before, to grow only once.
                long likely = done == 0 ? 0 : (count - done) * (size - start) / done + needed;
                reserve((int) Math.max(needed, Math.min(likely, maxSize - size)));
            }
            size = floats.write(values, done, next, bytes, size);
            done += next;
        }
        // The last comma.
        size -= count == 0 ? 0 : 1;
        return this;
    }

    /** Writes a number so that it reads back as the same double. */
    JsonWriter real(double value) {
        number.setLength(0);
        number.append(value);
        return decimal();
    }

    private JsonWriter decimal() {
        JsonDecimals.restyle(number);
        int length = number.length();
        reserve(length);
        for (int i = 0; i < length; i++) {
            bytes[size++] = (byte) number.charAt(i);
        }
        return this;
    }

    private JsonWriter digits(long value) {
        long rest = value;
        int length = 1;
        for (long left = value / 10; left != 0; left /= 10) {
            length++;
        }
        for (int i = size + length - 1; i >= size; i--) {
            bytes[i] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        size += length;
        return this;
    }

    private void character(byte next) {
        reserve(MAX_ESCAPE_BYTES);
        if (next < 0 || (next >= ' ' && next != '"' && next != '\\')) {
            bytes[size++] = next;
            return;
        }
        bytes[size++] = '\\';
        switch (next) {
            case '"', '\\' -> bytes[size++] = next;
            case '\b' -> bytes[size++] = 'b';
            case '\f' -> bytes[size++] = 'f';
            case '\n' -> bytes[size++] = 'n';
            case '\r' -> bytes[size++] = 'r';
            case '\t' -> bytes[size++] = 't';
            default -> {
                bytes[size++] = 'u';
                bytes[size++] = '0';
                bytes[size++] = '0';
                bytes[size++] = HEX[next >> 4];
                bytes[size++] = HEX[next & 0xF];
            }
        }
    }

    private void reserve(int more) {
        long needed = (long) size + more;
        if (needed > bytes.length) {
            if (needed > maxSize - (chunks == null ? 0 : chunks.size())) {
                throw JsonFields.invalid("the response is larger than " + maxSize
                        + " bytes as JSON; request its outputs as binary data");
            }
            if (chunks == null) {
                bytes = Arrays.copyOf(bytes, (int) Math.max(needed, Math.min(2L * bytes.length, maxSize)));
            } else {
                flush();
                bytes = chunks.allocate(Math.max(more, JsonChunks.CHUNK_SIZE));
            }
        }
    }
}
