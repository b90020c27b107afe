package dev.nereid.grpc.wire;

import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes the fields of protobuf messages, one after another, to the heap. Confined to one thread.
 *
 * <p>Protobuf's {@code CodedOutputStream} has an array that does not grow, and needs the length of a nested message
 * before its content.
 */
final class WireWriter {
    private static final int INITIAL_BYTES = 256;
    private static final int MAX_VARINT_BYTES = 10;

    /** The maximum length of texts written character by character: mostly names, which need no array of their own. */
    private static final int SHORT_TEXT = 64;

    private static final int MAX_ASCII = 0x7F;

    private byte[] bytes;
    private int size;

    WireWriter() {
        this(INITIAL_BYTES);
    }

    /** Creates an empty writer for approximately {@code expectedBytes}. */
    WireWriter(int expectedBytes) {
        this(new byte[expectedBytes]);
    }

    /** Creates an empty writer to an array, which a longer one replaces if it is too short. */
    WireWriter(byte[] target) {
        bytes = target;
    }

    /** Returns the array with the written bytes from index 0 to {@link #size}, valid until more is written. */
    byte[] array() {
        return bytes;
    }

    /** Returns the number of bytes written. */
    int size() {
        return size;
    }

    void varintField(int number, long value) {
        tag(number, WireReader.VARINT);
        varint(value);
    }

    void doubleField(int number, double value) {
        tag(number, WireReader.FIXED64);
        ensure(Long.BYTES);
        long bits = Double.doubleToRawLongBits(value);
        for (int shift = 0; shift < Long.SIZE; shift += Byte.SIZE) {
            bytes[size++] = (byte) (bits >>> shift);
        }
    }

    /** Writes a text field, unless the text is empty. */
    void textField(int number, String text) {
        if (!text.isEmpty()) {
            presentTextField(number, text);
        }
    }

    /** Writes a text field, even if the text is empty. */
    void presentTextField(int number, String text) {
        int start = size;
        if (text.length() <= SHORT_TEXT) {
            lengthField(number, text.length());
            if (ascii(text)) {
                return;
            }
            size = start;
        }
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        lengthField(number, encoded.length);
        ensure(encoded.length);
        System.arraycopy(encoded, 0, bytes, size, encoded.length);
        size += encoded.length;
    }

    /** Writes a text, a byte for each character, if it is ASCII; otherwise writes nothing and returns {@code false}. */
    private boolean ascii(String text) {
        int length = text.length();
        ensure(length);
        byte[] target = bytes;
        int at = size;
        for (int i = 0; i < length; i++) {
            char character = text.charAt(i);
            if (character > MAX_ASCII) {
                return false;
            }
            target[at + i] = (byte) character;
        }
        size = at + length;
        return true;
    }

    /** Writes the tag and the length of a field. The caller writes the content, here or elsewhere. */
    void lengthField(int number, long length) {
        tag(number, WireReader.BYTES);
        varint(length);
    }

    void bytesField(int number, MemorySegment content) {
        lengthField(number, content.byteSize());
        int count = Math.toIntExact(content.byteSize());
        ensure(count);
        MemorySegment.copy(content, ValueLayout.JAVA_BYTE, 0, bytes, size, count);
        size += count;
    }

    /** Begins a field, such as a message, that is written in pieces; returns the position to pass to {@link #end}. */
    int begin(int number) {
        tag(number, WireReader.BYTES);
        ensure(1);
        return ++size; // most contents are short enough for a length of one byte
    }

    /** Ends the field that was begun last and not ended, at the position that {@link #begin} returned. */
    void end(int start) {
        int length = size - start;
        int gap = varintSize(length) - 1;
        if (gap > 0) {
            ensure(gap);
            System.arraycopy(bytes, start, bytes, start + gap, length);
        }
        size = start - 1;
        varint(length);
        size += length;
    }

    /** Writes the dimensions of a shape as a field of packed varints. Writes nothing if it has none. */
    void dimsField(int number, Shape shape) {
        int rank = shape.rank();
        if (rank > 0) {
            int start = begin(number);
            for (int i = 0; i < rank; i++) {
                varint(shape.dim(i));
            }
            end(start);
        }
    }

    private void tag(int number, int type) {
        varint((long) number << 3 | type);
    }

    private void varint(long value) {
        ensure(MAX_VARINT_BYTES);
        byte[] target = bytes;
        int at = size;
        long rest = value;
        while ((rest & ~0x7FL) != 0) {
            target[at++] = (byte) (rest | 0x80);
            rest >>>= 7;
        }
        target[at++] = (byte) rest;
        size = at;
    }

    private static int varintSize(long value) {
        return Math.max(1, (Long.SIZE - Long.numberOfLeadingZeros(value) + 6) / 7);
    }

    private void ensure(int count) {
        if (bytes.length - size < count) {
            bytes = Arrays.copyOf(bytes, Math.max(Math.addExact(size, count), 2 * bytes.length));
        }
    }
}
