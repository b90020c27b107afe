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
 * <p>A header, little-endian and without padding, then the content of each output at a multiple of {@value #ALIGNMENT}:
 * {@code version:byte count:int}, and for each output
 * {@code nameLength:int name typeLength:int type rank:int dims:long… place:long size:long}. Names are UTF-8, types as
 * on the wire. Another layout has another version, which older servers treat as a miss.
 */
public final class CachedResponse {
    /** The alignment of the content of outputs, in bytes. */
    private static final int ALIGNMENT = 64;

    private static final byte VERSION = 1;

    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private CachedResponse() {}

    /** Returns the size in bytes, 1 or more, that {@link #encode} needs. */
    public static long size(List<NamedTensor> outputs) {
        long end = headerSize(outputs);
        for (NamedTensor output : outputs) {
            end = aligned(end) + output.tensor().byteSize();
        }
        return end;
    }

    /** Writes outputs, in memory that Java code may read, to {@link #size} bytes of memory; every byte is written. */
    public static void encode(List<NamedTensor> outputs, MemorySegment target) {
        Header header = new Header(target);
        target.set(ValueLayout.JAVA_BYTE, 0, VERSION);
        header.at = 1;
        header.putInt(outputs.size());
        long end = headerSize(outputs);
        for (NamedTensor output : outputs) {
            Tensor tensor = output.tensor();
            long place = aligned(end);
            header.putText(output.name());
            header.putText(tensor.type().name());
            header.putInt(tensor.shape().rank());
            for (int i = 0; i < tensor.shape().rank(); i++) {
                header.putLong(tensor.shape().dim(i));
            }
            header.putLong(place);
            header.putLong(tensor.byteSize());
            target.asSlice(end, place - end).fill((byte) 0);
            MemorySegment.copy(tensor.data(), 0, target, place, tensor.byteSize());
            end = place + tensor.byteSize();
        }
    }

    /** Reads outputs as views of the content, which is any bytes; empty if {@link #encode} cannot have written it. */
    public static Optional<List<NamedTensor>> decode(MemorySegment content) {
        try {
            return Optional.of(read(content));
        } catch (IndexOutOfBoundsException | IllegalArgumentException | ArithmeticException e) {
            return Optional.empty();
        }
    }

    /** Throws one of the exceptions that {@link #decode} catches if the content is malformed. */
    private static List<NamedTensor> read(MemorySegment content) {
        require(content.get(ValueLayout.JAVA_BYTE, 0) == VERSION);
        Header header = new Header(content);
        header.at = 1;
        int count = header.getInt();
        require(count >= 0 && count <= content.byteSize());
        List<NamedTensor> outputs = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String name = header.getText();
            DataType type = DataType.ofName(header.getText()).orElseThrow(IllegalArgumentException::new);
            int rank = header.getInt();
            require(rank >= 0 && rank <= content.byteSize() / Long.BYTES);
            long[] dims = new long[rank];
            for (int dim = 0; dim < rank; dim++) {
                dims[dim] = header.getLong();
            }
            long place = header.getLong();
            require(place % ALIGNMENT == 0);
            Tensor tensor = Tensor.of(type, Shape.of(dims), content.asSlice(place, header.getLong()));
            require(type.isFixedSize() || isFramed(tensor));
            outputs.add(new NamedTensor(name, tensor));
        }
        return Collections.unmodifiableList(outputs);
    }

    private static void require(boolean valid) {
        if (!valid) {
            throw new IllegalArgumentException("not a cached response");
        }
    }

    /** Returns whether memory holds exactly the byte strings of a tensor. */
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

    /** Reads and writes the header of a cached response. Confined to one encoding or decoding. */
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
