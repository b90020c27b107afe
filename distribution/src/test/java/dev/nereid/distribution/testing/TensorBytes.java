package dev.nereid.distribution.testing;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes and reads the bytes of tensors. */
public final class TensorBytes {
    private TensorBytes() {}

    public static byte[] floats(float... values) {
        byte[] bytes = new byte[values.length * Float.BYTES];
        littleEndian(bytes).asFloatBuffer().put(values);
        return bytes;
    }

    public static byte[] ints(int... values) {
        byte[] bytes = new byte[values.length * Integer.BYTES];
        littleEndian(bytes).asIntBuffer().put(values);
        return bytes;
    }

    public static byte[] longs(long... values) {
        byte[] bytes = new byte[values.length * Long.BYTES];
        littleEndian(bytes).asLongBuffer().put(values);
        return bytes;
    }

    static byte[] shorts(short... values) {
        byte[] bytes = new byte[values.length * Short.BYTES];
        littleEndian(bytes).asShortBuffer().put(values);
        return bytes;
    }

    public static byte[] strings(String... values) {
        byte[][] encoded = Arrays.stream(values)
                .map(value -> value.getBytes(StandardCharsets.UTF_8))
                .toArray(byte[][]::new);
        int size = Arrays.stream(encoded)
                .mapToInt(value -> Integer.BYTES + value.length)
                .sum();
        byte[] bytes = new byte[size];
        ByteBuffer target = littleEndian(bytes);
        for (byte[] value : encoded) {
            target.putInt(value.length).put(value);
        }
        return bytes;
    }

    public static float[] toFloats(byte[] bytes) {
        float[] values = new float[bytes.length / Float.BYTES];
        littleEndian(bytes).asFloatBuffer().get(values);
        return values;
    }

    /** Returns the index of the largest value. */
    public static int indexOfLargest(float[] values) {
        int largest = 0;
        for (int i = 1; i < values.length; i++) {
            if (values[i] > values[largest]) {
                largest = i;
            }
        }
        return largest;
    }

    private static ByteBuffer littleEndian(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
