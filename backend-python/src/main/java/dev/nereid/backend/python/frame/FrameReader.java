package dev.nereid.backend.python.frame;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the fields of one frame in order, and checks each of them. For one thread at a time.
 *
 * <p>Nothing in a frame is trusted, since native code of a model may write anything: a read beyond the end, a length or
 * a count that does not fit and a tensor with another size than its shape throw {@link FrameException}. Memory is
 * allocated for bytes that have arrived, not for a claimed length.
 */
public final class FrameReader {
    private static final ValueLayout.OfShort U16 = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt U32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong U64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble F64 =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private MemorySegment memory = MemorySegment.NULL;
    private long start;
    private long end;
    private long position;

    /** Sets the frame, at least as long as its header. Returns this reader, at the first field behind the header. */
    public FrameReader of(MemorySegment received, long offset, long length) {
        memory = received;
        start = offset;
        end = offset + length;
        position = offset + FrameType.HEADER_SIZE;
        return this;
    }

    /** Returns the length of the frame that begins at an offset, of which the header is there. */
    public static long lengthAt(MemorySegment received, long offset) {
        return Integer.toUnsignedLong(received.get(U32, offset));
    }

    public int type() {
        return Byte.toUnsignedInt(memory.get(ValueLayout.JAVA_BYTE, start + 4));
    }

    public int flags() {
        return Byte.toUnsignedInt(memory.get(ValueLayout.JAVA_BYTE, start + 5));
    }

    public int count() {
        return Short.toUnsignedInt(memory.get(U16, start + 6));
    }

    public long id() {
        return memory.get(U64, start + 8);
    }

    /** Returns a copy of the whole frame in separate memory, for another thread. */
    public FrameReader copy() {
        byte[] bytes = memory.asSlice(start, end - start).toArray(ValueLayout.JAVA_BYTE);
        FrameReader copied = new FrameReader().of(MemorySegment.ofArray(bytes), 0, bytes.length);
        copied.position = position - start;
        return copied;
    }

    /** Returns the number of bytes that are left. */
    public long remaining() {
        return end - position;
    }

    public int u8(String field) {
        need(field, 1);
        int value = Byte.toUnsignedInt(memory.get(ValueLayout.JAVA_BYTE, position));
        position += 1;
        return value;
    }

    public int u16(String field) {
        need(field, Short.BYTES);
        int value = Short.toUnsignedInt(memory.get(U16, position));
        position += Short.BYTES;
        return value;
    }

    /** Reads 32 bits, as a signed number. */
    public int i32(String field) {
        need(field, Integer.BYTES);
        int value = memory.get(U32, position);
        position += Integer.BYTES;
        return value;
    }

    public long u32(String field) {
        return Integer.toUnsignedLong(i32(field));
    }

    public long u64(String field) {
        need(field, Long.BYTES);
        long value = memory.get(U64, position);
        position += Long.BYTES;
        return value;
    }

    /** Returns the next 64 bits, which stay the next field. */
    public long peekU64(String field) {
        need(field, Long.BYTES);
        return memory.get(U64, position);
    }

    /** Reads a floating point number of 64 bits. */
    public double f64(String field) {
        need(field, Double.BYTES);
        double value = memory.get(F64, position);
        position += Double.BYTES;
        return value;
    }

    public byte[] bytes(String field, long length) {
        need(field, length);
        byte[] bytes = memory.asSlice(position, length).toArray(ValueLayout.JAVA_BYTE);
        position += length;
        return bytes;
    }

    /** Reads a text of a known length in bytes. */
    public String text(String field, long length) {
        return length == 0 ? "" : new String(bytes(field, length), UTF_8);
    }

    public String text(String field) {
        return text(field, u32(field));
    }

    /** Reads a count of entries that have at least a number of bytes each. */
    public int entries(String field, int leastSize) {
        long count = u32(field);
        if (count * leastSize > remaining()) {
            throw new FrameException(field + ": " + count + " entries in a frame that has " + remaining()
                    + " bytes left (expected: at least " + leastSize + " bytes each)");
        }
        return (int) count;
    }

    public List<String> texts(String field) {
        int count = entries(field, Integer.BYTES);
        List<String> texts = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            texts.add(text(field));
        }
        return texts;
    }

    /** Reads the number of pairs of texts, then the pairs. */
    public Map<String, String> map(String field) {
        int count = entries(field, 2 * Integer.BYTES);
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            String name = text(field);
            map.put(name, text(field));
        }
        return map;
    }

    /** Reads {@code count} parameters. Each value is a {@link Boolean}, a {@link Long} or a {@link String}. */
    public Map<String, Object> parameters(int count) {
        Map<String, Object> parameters = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            String name = text("parameter");
            int kind = u8("kind of a parameter");
            parameters.put(
                    name,
                    switch (kind) {
                        case 1 -> u8("value of a parameter") != 0;
                        case 2 -> u64("value of a parameter");
                        case 3 -> text("value of a parameter");
                        default -> throw new FrameException("kind of a parameter: " + kind + " (expected: 1, 2 or 3)");
                    });
        }
        return parameters;
    }

    /** Reads a tensor, and its data as memory of the frame if it is there. Errors name its role {@code what}. */
    public FrameTensor tensor(String what) {
        int name = u16(what);
        int typeNumber = u8(what);
        int rank = u8(what);
        long segment = u32(what);
        long offset = u64(what);
        long size = u64(what);
        DataType type = ElementTypes.type(what, typeNumber);
        need(what, (long) rank * Long.BYTES);
        long[] dims = new long[rank];
        long elements = 1;
        long others = 1;
        for (int i = 0; i < rank; i++) {
            dims[i] = memory.get(U64, position);
            position += Long.BYTES;
            elements = product(what, elements, dims[i]);
            others = product(what, others, Math.max(dims[i], 1)); // no overflow beside a 0 either
        }
        if (type.isFixedSize()) {
            long expected = product(what, elements, type.byteSize());
            if (size != expected) {
                throw new FrameException(
                        what + ": " + size + " bytes (expected: " + expected + ", those of its shape)");
            }
        } else if (size < 0 || elements > size / Integer.BYTES) {
            throw new FrameException(
                    what + ": " + size + " bytes for " + elements + " texts (expected: 4 or more each)");
        }
        if (segment != 0) {
            return new FrameTensor(name, type, Shape.of(dims), elements, segment, offset, size, MemorySegment.NULL);
        }
        long data = start + offset;
        if ((offset & 7) != 0 || data < position || data - position > 7 || size > end - data) {
            throw new FrameException(what + ": data of " + size + " bytes at " + offset + " in a frame of "
                    + (end - start) + " bytes (expected: behind the shape, and within the frame)");
        }
        position = data + size;
        return new FrameTensor(name, type, Shape.of(dims), elements, 0, 0, size, memory.asSlice(data, size));
    }

    private static long product(String what, long elements, long factor) {
        if (factor < 0) {
            throw new FrameException(what + ": dimension " + factor + " (expected: 0 or more)");
        }
        long high = Math.multiplyHigh(elements, factor);
        long low = elements * factor;
        if (high != 0 || low < 0) {
            throw new FrameException(what + ": a shape of more elements than memory has (expected: fewer)");
        }
        return low;
    }

    private void need(String field, long size) {
        if (size < 0 || size > end - position) {
            throw new FrameException(field + ": " + size + " bytes in a frame that has " + (end - position)
                    + " left (expected: no more)");
        }
    }
}
