package dev.nereid.distribution;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes and reads the bytes of tensors. */
final class TensorBytes {
    private TensorBytes() {}

    static byte[] floats(float... values) {
        ByteBuffer bytes = littleEndian(values.length * Float.BYTES);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return bytes.array();
    }

    static byte[] ints(int... values) {
        ByteBuffer bytes = littleEndian(values.length * Integer.BYTES);
        for (int value : values) {
            bytes.putInt(value);
        }
        return bytes.array();
    }

    static byte[] shorts(short... values) {
        ByteBuffer bytes = littleEndian(values.length * Short.BYTES);
        for (short value : values) {
            bytes.putShort(value);
        }
        return bytes.array();
    }

    static byte[] strings(String... values) {
        byte[][] encoded = Arrays.stream(values)
                .map(value -> value.getBytes(StandardCharsets.UTF_8))
                .toArray(byte[][]::new);
        ByteBuffer bytes = littleEndian(Arrays.stream(encoded)
                .mapToInt(value -> Integer.BYTES + value.length)
                .sum());
        for (byte[] value : encoded) {
            bytes.putInt(value.length).put(value);
        }
        return bytes.array();
    }

    static float[] toFloats(byte[] bytes) {
        float[] values = new float[bytes.length / Float.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
        return values;
    }

    /** Returns the index of the largest value. */
    static int indexOfLargest(float[] values) {
        int largest = 0;
        for (int i = 1; i < values.length; i++) {
            if (values[i] > values[largest]) {
                largest = i;
            }
        }
        return largest;
    }

    private static ByteBuffer littleEndian(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    }
}
