package dev.nereid.spi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongToDoubleFunction;
import java.util.function.LongToIntFunction;
import java.util.function.LongUnaryOperator;

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

    /** The same for a byte string that becomes a {@code String}. */
    private static final int STRING_BYTES = 56;

    private TensorElements() {}

    static float[] floats(Tensor tensor) {
        MemorySegment data = tensor.data();
        return switch (tensor.type()) {
            case FP32 -> host(tensor).toArray(FLOAT);
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
                    values[i] = bfloat16(data.get(SHORT, (long) i * Short.BYTES));
                }
                yield values;
            }
            case BOOL, UINT8, INT8, UINT16, INT16 -> {
                LongToIntFunction reader = smallInteger(tensor);
                float[] values = new float[count(tensor)];
                int size = tensor.type().byteSize();
                for (int i = 0; i < values.length; i++) {
                    values[i] = reader.applyAsInt((long) i * size);
                }
                yield values;
            }
            case UINT32, UINT64, INT32, INT64, FP64, BYTES ->
                throw unexpected(tensor, "FP32, FP16, BF16, BOOL, or an integer of 8 or 16 bits");
        };
    }

    static double[] doubles(Tensor tensor) {
        MemorySegment data = tensor.data();
        return switch (tensor.type()) {
            case FP64 -> host(tensor).toArray(DOUBLE);
            case FP32 -> doubles(tensor, at -> data.get(FLOAT, at));
            case FP16 -> doubles(tensor, at -> Float.float16ToFloat(data.get(SHORT, at)));
            case BF16 -> doubles(tensor, at -> bfloat16(data.get(SHORT, at)));
            case INT32 -> doubles(tensor, at -> data.get(INT, at));
            case UINT32 -> doubles(tensor, at -> Integer.toUnsignedLong(data.get(INT, at)));
            case BOOL, UINT8, INT8, UINT16, INT16 -> {
                LongToIntFunction reader = smallInteger(tensor);
                yield doubles(tensor, reader::applyAsInt);
            }
            case UINT64, INT64, BYTES ->
                throw unexpected(tensor, "FP64, FP32, FP16, BF16, BOOL, or an integer of up to 32 bits");
        };
    }

    private static double[] doubles(Tensor tensor, LongToDoubleFunction reader) {
        double[] values = new double[count(tensor)];
        int size = tensor.type().byteSize();
        for (int i = 0; i < values.length; i++) {
            values[i] = reader.applyAsDouble((long) i * size);
        }
        return values;
    }

    private static float bfloat16(short bits) {
        return Float.intBitsToFloat(bits << Short.SIZE);
    }

    static int[] ints(Tensor tensor) {
        return switch (tensor.type()) {
            case INT32 -> host(tensor).toArray(INT);
            case BOOL, UINT8, INT8, UINT16, INT16 -> {
                LongToIntFunction reader = smallInteger(tensor);
                int[] values = new int[count(tensor)];
                int size = tensor.type().byteSize();
                for (int i = 0; i < values.length; i++) {
                    values[i] = reader.applyAsInt((long) i * size);
                }
                yield values;
            }
            case UINT32, UINT64, INT64, FP16, FP32, FP64, BYTES, BF16 ->
                throw unexpected(tensor, "INT32, BOOL, or an integer of 8 or 16 bits");
        };
    }

    /** Returns the function that reads an element of up to 16 bits, given its offset. */
    private static LongToIntFunction smallInteger(Tensor tensor) {
        MemorySegment data = tensor.data();
        return switch (tensor.type()) {
            case INT16 -> at -> data.get(SHORT, at);
            case UINT16 -> at -> Short.toUnsignedInt(data.get(SHORT, at));
            case INT8 -> at -> data.get(ValueLayout.JAVA_BYTE, at);
            case UINT8 -> at -> Byte.toUnsignedInt(data.get(ValueLayout.JAVA_BYTE, at));
            case BOOL -> at -> data.get(ValueLayout.JAVA_BYTE, at) == 0 ? 0 : 1;
            case INT32, UINT32, UINT64, INT64, FP16, FP32, FP64, BYTES, BF16 ->
                throw new IllegalArgumentException("type: " + tensor.type() + " (expected: up to 16 bits)");
        };
    }

    static long[] longs(Tensor tensor) {
        MemorySegment data = tensor.data();
        return switch (tensor.type()) {
            case INT64, UINT64 -> host(tensor).toArray(LONG);
            case INT32 -> longs(tensor, at -> data.get(INT, at));
            case UINT32 -> longs(tensor, at -> Integer.toUnsignedLong(data.get(INT, at)));
            case BOOL, UINT8, INT8, UINT16, INT16 -> {
                LongToIntFunction reader = smallInteger(tensor);
                yield longs(tensor, reader::applyAsInt);
            }
            case FP16, FP32, FP64, BYTES, BF16 -> throw unexpected(tensor, "an integer type or BOOL");
        };
    }

    private static long[] longs(Tensor tensor, LongUnaryOperator reader) {
        long[] values = new long[count(tensor)];
        int size = tensor.type().byteSize();
        for (int i = 0; i < values.length; i++) {
            values[i] = reader.applyAsLong((long) i * size);
        }
        return values;
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
        MemorySegment data = host(tensor);
        List<T> elements = new ArrayList<>();
        long heap = 0;
        long at = 0;
        while (at < data.byteSize()) {
            long left = data.byteSize() - at - Integer.BYTES;
            long length = left < 0 ? -1 : Integer.toUnsignedLong(data.get(INT, at));
            if (left < 0 || length > left) {
                throw new IllegalStateException(
                        described(tensor) + ": element " + elements.size() + " runs beyond the end of the memory");
            }
            heap += ownBytes + length;
            if (heap > maxBytes) {
                throw new IllegalStateException(described(tensor) + ": elements after " + elements.size()
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

    /** Returns the number of elements, each of which becomes one of an array. */
    private static int count(Tensor tensor) {
        host(tensor);
        long count = tensor.shape().elementCount();
        if (count > Integer.MAX_VALUE - 8) { // the longest array of the JVM
            throw new IllegalStateException(described(tensor) + " (expected: as many elements as fit a Java array)");
        }
        return (int) count;
    }

    private static MemorySegment host(Tensor tensor) {
        if (!tensor.place().isHost()) {
            throw new IllegalStateException(
                    described(tensor) + " in " + tensor.place() + " (expected: in memory of the host)");
        }
        return tensor.data();
    }

    /** Returns the name of a tensor, if it has one, its type and its shape. */
    private static String described(Tensor tensor) {
        return tensor.name().map(name -> "tensor '" + name + "': ").orElse("tensor: ") + tensor;
    }

    private static BackendException unexpected(Tensor tensor, String expected) {
        DataType type = tensor.type();
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT,
                described(tensor) + " (expected: " + expected + "; " + type + " is read by " + reader(type) + ")");
    }

    /** Returns the method that reads a type, in the smallest Java type that represents it. */
    private static String reader(DataType type) {
        return switch (type) {
            case BOOL, UINT8, INT8, UINT16, INT16, INT32 -> "ints()";
            case UINT32, INT64, UINT64 -> "longs()";
            case FP16, BF16, FP32 -> "floats()";
            case FP64 -> "doubles()";
            case BYTES -> "strings()";
        };
    }
}
