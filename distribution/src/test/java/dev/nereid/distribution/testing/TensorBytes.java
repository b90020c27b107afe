package dev.nereid.distribution.testing;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

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
        return byteStrings(Arrays.stream(values)
                .map(value -> value.getBytes(StandardCharsets.UTF_8))
                .toArray(byte[][]::new));
    }

    /** Writes elements of a tensor of BYTES. */
    public static byte[] byteStrings(byte[]... values) {
        int size = Arrays.stream(values)
                .mapToInt(value -> Integer.BYTES + value.length)
                .sum();
        byte[] bytes = new byte[size];
        ByteBuffer target = littleEndian(bytes);
        for (byte[] value : values) {
            target.putInt(value.length).put(value);
        }
        return bytes;
    }

    /** Reads the elements of a tensor of BYTES as texts. */
    public static List<String> toStrings(byte[] bytes) {
        List<String> values = new ArrayList<>();
        ByteBuffer source = littleEndian(bytes);
        while (source.hasRemaining()) {
            byte[] value = new byte[source.getInt()];
            source.get(value);
            values.add(new String(value, StandardCharsets.UTF_8));
        }
        return values;
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
