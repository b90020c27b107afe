package dev.nereid.scheduler.cache;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;

/**
 * Encodes and decodes the outputs of a cached response. Static functions only.
 *
 * <p>A head, little-endian and without padding, then the content of each output at a multiple of {@value #ALIGNMENT}:
 * {@code version:byte count:int}, and for each output
 * {@code nameLength:int name typeLength:int type rank:int dims:long… place:long size:long}. Names are UTF-8, types as
 * on the wire. Another layout gets another version, which older servers take for no entry.
 */
public final class CachedResponse {
    /** Where the content of outputs begins. */
    private static final int ALIGNMENT = 64;

    private static final byte VERSION = 1;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private CachedResponse() {}

    /**
     * Says how much memory {@link #encode} needs.
     *
     * @param outputs the outputs
     * @return the size in bytes, 1 or more
     */
    public static long size(List<NamedTensor> outputs) {
        long end = headerSize(outputs);
        for (NamedTensor output : outputs) {
            end = aligned(end) + output.tensor().byteSize();
        }
        return end;
    }

    /**
     * Writes outputs.
     *
     * @param outputs the outputs, in memory that Java code may read
     * @param target as much memory as {@link #size} says; every byte is written
     */
    public static void encode(List<NamedTensor> outputs, MemorySegment target) {
        Header head = new Header(target);
        target.set(ValueLayout.JAVA_BYTE, 0, VERSION);
        head.at = 1;
        head.putInt(outputs.size());
        long end = headerSize(outputs);
        for (NamedTensor output : outputs) {
            Tensor tensor = output.tensor();
            long place = aligned(end);
            head.putText(output.name());
            head.putText(tensor.type().name());
            head.putInt(tensor.shape().rank());
            for (int i = 0; i < tensor.shape().rank(); i++) {
                head.putLong(tensor.shape().dim(i));
            }
            head.putLong(place);
            head.putLong(tensor.byteSize());
            target.asSlice(end, place - end).fill((byte) 0);
            MemorySegment.copy(tensor.data(), 0, target, place, tensor.byteSize());
            end = place + tensor.byteSize();
        }
    }

    /**
     * Reads outputs, where they lie.
     *
     * @param content what was kept; any bytes
     * @return the outputs, views of {@code content}; empty if they are not what {@link #encode} writes
     */
    public static Optional<List<NamedTensor>> decode(MemorySegment content) {
        try {
            return Optional.of(read(content));
        } catch (IndexOutOfBoundsException | IllegalArgumentException | ArithmeticException e) {
            return Optional.empty();
        }
    }

    /** Fails with one of the exceptions of {@link #decode} for anything that is not right. */
    private static List<NamedTensor> read(MemorySegment content) {
        require(content.get(ValueLayout.JAVA_BYTE, 0) == VERSION);
        Header head = new Header(content);
        head.at = 1;
        int count = head.getInt();
        require(count >= 0 && count <= content.byteSize());
        List<NamedTensor> outputs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String name = head.getText();
            DataType type = DataType.ofName(head.getText()).orElseThrow(IllegalArgumentException::new);
            int rank = head.getInt();
            require(rank >= 0 && rank <= content.byteSize() / Long.BYTES);
            long[] dims = new long[rank];
            for (int dim = 0; dim < rank; dim++) {
                dims[dim] = head.getLong();
            }
            long place = head.getLong();
            require(place % ALIGNMENT == 0);
            Tensor tensor = Tensor.of(type, Shape.of(dims), content.asSlice(place, head.getLong()));
            require(type.isFixedSize() || isFramed(tensor));
            outputs.add(new NamedTensor(name, tensor));
        }
        return Collections.unmodifiableList(outputs);
    }

    private static void require(boolean right) {
        if (!right) {
            throw new IllegalArgumentException("not a cached response");
        }
    }

    /** Says whether memory holds exactly the byte strings of a tensor. */
    private static boolean isFramed(Tensor tensor) {
        MemorySegment data = tensor.data();
        long left = tensor.shape().elementCount();
        long at = 0;
        while (left > 0 && at < data.byteSize()) {
            at += Integer.BYTES + Integer.toUnsignedLong(data.get(INT, at));
            left--;
        }
        return left == 0 && at == data.byteSize();
    }

    private static long headerSize(List<NamedTensor> outputs) {
        long size = 1 + Integer.BYTES;
        for (NamedTensor output : outputs) {
            Tensor tensor = output.tensor();
            size += Integer.BYTES + output.name().getBytes(StandardCharsets.UTF_8).length;
            size += Integer.BYTES + tensor.type().name().length();
            size += Integer.BYTES + (long) Long.BYTES * (tensor.shape().rank() + 2);
        }
        return size;
    }

    private static long aligned(long at) {
        return Math.ceilDiv(at, ALIGNMENT) * ALIGNMENT;
    }

    /** Reads and writes the header of a cached response. Confined to one reading or writing. */
    private static final class Header {
        private final MemorySegment memory;
        private long at;

        Header(MemorySegment memory) {
            this.memory = memory;
        }

        void putInt(int value) {
            memory.set(INT, at, value);
            at += Integer.BYTES;
        }

        int getInt() {
            int value = memory.get(INT, at);
            at += Integer.BYTES;
            return value;
        }

        void putLong(long value) {
            memory.set(LONG, at, value);
            at += Long.BYTES;
        }

        long getLong() {
            long value = memory.get(LONG, at);
            at += Long.BYTES;
            return value;
        }

        void putText(String text) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            putInt(bytes.length);
            MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, at, bytes.length);
            at += bytes.length;
        }

        String getText() {
            int length = getInt();
            require(length >= 0 && length <= memory.byteSize() - at);
            byte[] bytes = memory.asSlice(at, length).toArray(ValueLayout.JAVA_BYTE);
            at += length;
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }
}
