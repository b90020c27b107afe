package dev.nereid.backend.python.frame;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Collection;
import java.util.Map;

/**
 * Writes one frame after the other into private memory, which grows as they need it. For one thread at a time.
 *
 * <p>Numbers are little endian and lie at any address. A frame is begun by {@link #begin} and ended by {@link #end}, after
 * which {@link #frame} is the whole of it until the next one is begun.
 */
public final class FrameWriter {
    private static final ValueLayout.OfShort U16 = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt U32 = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong U64 = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble F64 =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** The largest frame, in bytes. */
    private static final long LIMIT = (1L << 31) - 8;

    /** Memory above this size is dropped when the next frame is begun. */
    private static final long KEPT = 1 << 20;

    private static final int INITIAL = 4096;

    private MemorySegment memory = Arena.ofAuto().allocate(INITIAL);
    private long position;

    /** Begins a frame with a number of {@link FrameType}, flags of 8 bits and a count of 16 bits. */
    public FrameWriter begin(int type, int flags, int count, long id) {
        if (memory.byteSize() > KEPT) {
            memory = Arena.ofAuto().allocate(INITIAL);
        }
        memory.set(ValueLayout.JAVA_BYTE, 4, (byte) type);
        memory.set(ValueLayout.JAVA_BYTE, 5, (byte) flags);
        memory.set(U16, 6, (short) count);
        memory.set(U64, 8, id);
        position = FrameType.HEADER_SIZE;
        return this;
    }

    public FrameWriter u8(int value) {
        ensure(1);
        memory.set(ValueLayout.JAVA_BYTE, position, (byte) value);
        position += 1;
        return this;
    }

    public FrameWriter u16(int value) {
        ensure(Short.BYTES);
        memory.set(U16, position, (short) value);
        position += Short.BYTES;
        return this;
    }

    public FrameWriter u32(int value) {
        ensure(Integer.BYTES);
        memory.set(U32, position, value);
        position += Integer.BYTES;
        return this;
    }

    public FrameWriter u64(long value) {
        ensure(Long.BYTES);
        memory.set(U64, position, value);
        position += Long.BYTES;
        return this;
    }

    /** Writes a floating point number of 64 bits. */
    public FrameWriter f64(double value) {
        ensure(Double.BYTES);
        memory.set(F64, position, value);
        position += Double.BYTES;
        return this;
    }

    /** Writes bytes without their length. */
    public FrameWriter bytes(byte[] bytes) {
        ensure(bytes.length);
        MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, position, bytes.length);
        position += bytes.length;
        return this;
    }

    /** Writes the length of a text in bytes, then the text. */
    public FrameWriter text(String text) {
        byte[] bytes = text.getBytes(UTF_8);
        return u32(bytes.length).bytes(bytes);
    }

    public FrameWriter texts(Collection<String> texts) {
        u32(texts.size());
        texts.forEach(this::text);
        return this;
    }

    /** Writes the number of pairs, then the pairs. */
    public FrameWriter map(Map<String, String> map) {
        u32(map.size());
        map.forEach((name, value) -> text(name).text(value));
        return this;
    }

    /**
     * Writes a tensor together with its data, which Java code may read.
     *
     * @param name the index of the name, or the length of the name in bytes where the name follows
     */
    public FrameWriter inlineTensor(int name, Tensor tensor) {
        long size = tensor.byteSize();
        int rank = tensor.shape().rank();
        ensure(FrameType.TENSOR_SIZE + (long) Long.BYTES * rank + Long.BYTES + size);
        long data = align(position + FrameType.TENSOR_SIZE + (long) Long.BYTES * rank);
        head(name, tensor.type(), tensor.shape(), 0, data, size);
        memory.asSlice(position, data - position).fill((byte) 0);
        MemorySegment.copy(tensor.data(), 0, memory, data, size);
        position = data + size;
        return this;
    }

    /**
     * Writes a tensor with data in shared memory: {@code size} bytes at an offset of a segment, of a number not 0.
     *
     * @param name as of {@link #inlineTensor}
     */
    public FrameWriter sharedTensor(int name, DataType type, Shape shape, int segment, long offset, long size) {
        ensure(FrameType.TENSOR_SIZE + (long) Long.BYTES * shape.rank());
        head(name, type, shape, segment, offset, size);
        return this;
    }

    private void head(int name, DataType type, Shape shape, int segment, long offset, long size) {
        int rank = shape.rank();
        memory.set(U16, position, (short) name);
        memory.set(ValueLayout.JAVA_BYTE, position + 2, (byte) ElementTypes.number(type));
        memory.set(ValueLayout.JAVA_BYTE, position + 3, (byte) rank);
        memory.set(U32, position + 4, segment);
        memory.set(U64, position + 8, offset);
        memory.set(U64, position + 16, size);
        position += FrameType.TENSOR_SIZE;
        for (int i = 0; i < rank; i++) {
            memory.set(U64, position, shape.dim(i));
            position += Long.BYTES;
        }
    }

    /** Returns the number of bytes that were written, with the header. */
    public long size() {
        return position;
    }

    /** Ends the frame: fills it up to a multiple of eight bytes. Throws {@link FrameException} if it is too long. */
    public FrameWriter end() {
        ensure(Long.BYTES);
        long end = align(position);
        if (end > LIMIT) {
            throw new FrameException("frame: " + end + " bytes (expected: at most " + LIMIT + ")");
        }
        memory.asSlice(position, end - position).fill((byte) 0);
        position = end;
        memory.set(U32, 0, (int) end);
        return this;
    }

    /** Returns the bytes of the frame that was ended, valid until the next frame is begun. */
    public MemorySegment frame() {
        return memory.asSlice(0, position);
    }

    private void ensure(long size) {
        long needed = position + size;
        if (needed > memory.byteSize()) {
            if (needed > LIMIT + Long.BYTES) {
                throw new FrameException("frame: " + needed + " bytes (expected: at most " + LIMIT + ")");
            }
            MemorySegment larger = Arena.ofAuto().allocate(Math.max(needed, memory.byteSize() * 2));
            MemorySegment.copy(memory, 0, larger, 0, position);
            memory = larger;
        }
    }

    private static long align(long value) {
        return value + 7 & -8;
    }
}
