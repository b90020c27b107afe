package dev.nereid.spi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongToIntFunction;

/** Copies elements between tensors and Java arrays. Static functions only. */
final class TensorElements {
    static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    static final ValueLayout.OfDouble DOUBLE = ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** The part of the largest heap that the byte strings of one tensor may take. */
    private static final int HEAP_SHARE = 4;

    /** The bytes of heap of an array, with its padding and the reference to it. */
    private static final int BYTE_STRING_BYTES = 32;

    /** The same, and those of a string. */
    private static final int STRING_BYTES = 56;

    private TensorElements() {}

    static float[] floats(Tensor tensor) {
        MemorySegment data = host(tensor, "FP32, FP16 or BF16");
        return switch (tensor.type()) {
            case FP32 -> data.toArray(FLOAT);
            case FP16 -> {
                float[] values = new float[count(tensor)];
                for (int i = 0; i < values.length; i++) {
                    values[i] = Float.float16ToFloat(data.get(SHORT, (long) i * Short.BYTES));
                }
                yield values;
            }
            case BF16 -> {
                float[] values = new float[count(tensor)];
                for (int i = 0; i < values.length; i++) {
                    values[i] = Float.intBitsToFloat(data.get(SHORT, (long) i * Short.BYTES) << Short.SIZE);
                }
                yield values;
            }
            case BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP64, BYTES ->
                throw unexpected(tensor, "FP32, FP16 or BF16");
        };
    }

    static double[] doubles(Tensor tensor) {
        if (tensor.type() != DataType.FP64) {
            throw unexpected(tensor, "FP64");
        }
        return host(tensor, "FP64").toArray(DOUBLE);
    }

    static int[] ints(Tensor tensor) {
        String expected = "INT32, or an integer or BOOL of fewer bits";
        MemorySegment data = host(tensor, expected);
        return switch (tensor.type()) {
            case INT32 -> data.toArray(INT);
            case INT16 -> widen(tensor, at -> data.get(SHORT, at));
            case UINT16 -> widen(tensor, at -> Short.toUnsignedInt(data.get(SHORT, at)));
            case INT8 -> widen(tensor, at -> data.get(ValueLayout.JAVA_BYTE, at));
            case UINT8 -> widen(tensor, at -> Byte.toUnsignedInt(data.get(ValueLayout.JAVA_BYTE, at)));
            case BOOL -> widen(tensor, at -> data.get(ValueLayout.JAVA_BYTE, at) == 0 ? 0 : 1);
            case UINT32, UINT64, INT64, FP16, FP32, FP64, BYTES, BF16 -> throw unexpected(tensor, expected);
        };
    }

    private static int[] widen(Tensor tensor, LongToIntFunction read) {
        int[] values = new int[count(tensor)];
        int size = tensor.type().byteSize();
        for (int i = 0; i < values.length; i++) {
            values[i] = read.applyAsInt((long) i * size);
        }
        return values;
    }

    static long[] longs(Tensor tensor) {
        String expected = "INT64, UINT64 or UINT32";
        MemorySegment data = host(tensor, expected);
        return switch (tensor.type()) {
            case INT64, UINT64 -> data.toArray(LONG);
            case UINT32 -> {
                long[] values = new long[count(tensor)];
                for (int i = 0; i < values.length; i++) {
                    values[i] = Integer.toUnsignedLong(data.get(INT, (long) i * Integer.BYTES));
                }
                yield values;
            }
            case BOOL, UINT8, UINT16, INT8, INT16, INT32, FP16, FP32, FP64, BYTES, BF16 ->
                throw unexpected(tensor, expected);
        };
    }

    static List<byte[]> byteStrings(Tensor tensor) {
        return byteStrings(tensor, BYTE_STRING_BYTES, maxHeapBytes(), bytes -> bytes);
    }

    static List<String> strings(Tensor tensor) {
        return byteStrings(tensor, STRING_BYTES, maxHeapBytes(), bytes -> new String(bytes, StandardCharsets.UTF_8));
    }

    private static long maxHeapBytes() {
        return Runtime.getRuntime().maxMemory() / HEAP_SHARE;
    }

    /**
     * Converts byte strings. A tensor of empty ones takes many times as much heap as memory, so that the heap they take is
     * limited.
     *
     * @param ownBytes the bytes of heap that each takes beside its content
     * @param maxBytes the limit on the heap of all
     */
    static <T> List<T> byteStrings(Tensor tensor, int ownBytes, long maxBytes, Function<byte[], T> conversion) {
        if (tensor.type() != DataType.BYTES) {
            throw unexpected(tensor, "BYTES");
        }
        MemorySegment data = host(tensor, "BYTES");
        List<T> elements = new ArrayList<>();
        long heap = 0;
        long at = 0;
        while (at < data.byteSize()) {
            long left = data.byteSize() - at - Integer.BYTES;
            long length = left < 0 ? -1 : Integer.toUnsignedLong(data.get(INT, at));
            if (left < 0 || length > left) {
                throw new IllegalStateException(
                        "tensor: " + tensor + ": element " + elements.size() + " runs beyond the end of the memory");
            }
            heap += ownBytes + length;
            if (heap > maxBytes) {
                throw new IllegalStateException("tensor: " + tensor + ": elements after " + elements.size()
                        + " would take more than " + maxBytes
                        + " bytes of the heap (expected: fewer or shorter elements, or a larger -Xmx)");
            }
            elements.add(
                    conversion.apply(data.asSlice(at + Integer.BYTES, length).toArray(ValueLayout.JAVA_BYTE)));
            at += Integer.BYTES + length;
        }
        return elements;
    }

    /** Encodes texts as UTF-8. */
    static List<byte[]> encode(List<String> texts) {
        List<byte[]> encoded = new ArrayList<>(texts.size());
        for (String text : texts) {
            encoded.add(text.getBytes(StandardCharsets.UTF_8));
        }
        return encoded;
    }

    /** Returns the size of byte strings with the length in front of each. */
    static long framedSize(List<byte[]> elements) {
        long size = 0;
        for (byte[] element : elements) {
            size += Integer.BYTES + (long) element.length;
        }
        return size;
    }

    /** Writes byte strings with the length in front of each. */
    static void frame(List<byte[]> elements, MemorySegment data) {
        long at = 0;
        for (byte[] element : elements) {
            data.set(INT, at, element.length);
            MemorySegment.copy(element, 0, data, ValueLayout.JAVA_BYTE, at + Integer.BYTES, element.length);
            at += Integer.BYTES + (long) element.length;
        }
    }

    /** Requires as many values as a shape has elements. */
    static void checkCount(String what, int count, Shape shape) {
        if (shape.elementCount() != count) {
            throw new IllegalArgumentException(
                    what + ": " + count + " (expected: " + shape.elementCount() + " for " + shape + ")");
        }
    }

    private static int count(Tensor tensor) {
        return Math.toIntExact(tensor.shape().elementCount());
    }

    private static MemorySegment host(Tensor tensor, String expected) {
        if (!tensor.place().isHost()) {
            throw unexpected(tensor, expected);
        }
        return tensor.data();
    }

    private static IllegalStateException unexpected(Tensor tensor, String expected) {
        return new IllegalStateException("tensor: " + tensor + (tensor.place().isHost() ? "" : " in " + tensor.place())
                + " (expected: " + expected + " in memory of the host)");
    }
}
