package dev.nereid.backend.onnx.ort;

import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Native memory with the contents that tests need. Confined to the test's thread; frees all when it is closed. */
public final class TestTensors implements AutoCloseable {
    private final Arena arena = Arena.ofConfined();

    public MemorySegment floats(float... values) {
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    }

    public MemorySegment longs(long... values) {
        return arena.allocateFrom(ValueLayout.JAVA_LONG, values);
    }

    public MemorySegment empty(long bytes) {
        return arena.allocate(bytes, Long.BYTES);
    }

    MemorySegment bytes(byte... values) {
        return arena.allocate(values.length, Long.BYTES).copyFrom(MemorySegment.ofArray(values));
    }

    /** Returns {@code bytes} bytes that no element type can confuse: random, but as truth values valid. */
    public MemorySegment random(OrtElementType type, long bytes) {
        byte[] values = new byte[(int) bytes];
        new Random(bytes).nextBytes(values);
        if (type == OrtElementType.BOOL) {
            for (int i = 0; i < values.length; i++) {
                values[i] &= 1;
            }
        }
        return bytes(values);
    }

    /** Returns strings as their length in 4 bytes, little-endian, and their bytes. */
    public MemorySegment strings(byte[]... strings) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] string : strings) {
            all.writeBytes(ByteBuffer.allocate(4)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(string.length)
                    .array());
            all.writeBytes(string);
        }
        return bytes(all.toByteArray());
    }

    public static float[] floats(MemorySegment segment) {
        return segment.toArray(ValueLayout.JAVA_FLOAT);
    }

    public static byte[] bytes(MemorySegment segment) {
        return segment.toArray(ValueLayout.JAVA_BYTE);
    }

    public static List<byte[]> strings(MemorySegment segment) {
        List<byte[]> strings = new ArrayList<>();
        ByteBuffer bytes = segment.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
        while (bytes.hasRemaining()) {
            byte[] string = new byte[bytes.getInt()];
            bytes.get(string);
            strings.add(string);
        }
        return strings;
    }

    @Override
    public void close() {
        arena.close();
    }
}
