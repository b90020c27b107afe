package dev.nereid.distribution.parity;

import static dev.nereid.distribution.parity.Protocol.HTTP_JSON;

import dev.nereid.distribution.testing.TensorBytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** Tensors of every type and shape, and the edges of the types. */
final class ScenarioTypes {
    static final List<String> TYPES = List.of(
            "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32",
            "FP64", "BYTES");

    private ScenarioTypes() {}

    /** Returns the model of a type that batches. */
    static String batching(String type) {
        return "batch_" + type.toLowerCase(Locale.ROOT);
    }

    /** Returns the model of a type that does not. */
    static String flat(String type) {
        return "flat_" + type.toLowerCase(Locale.ROOT);
    }

    static Stream<Scenario> all() {
        return Stream.concat(TYPES.stream().flatMap(ScenarioTypes::shapes), edges());
    }

    private static Stream<Scenario> shapes(String type) {
        return Stream.of(
                echo(type + ": one element", batching(type), type, 1, 1),
                echo(type + ": some elements", batching(type), type, 1, 5),
                echo(type + ": a batch", batching(type), type, 3, 4),
                echo(type + ": the largest batch", batching(type), type, 8, 2),
                echo(type + ": no elements", batching(type), type, 1, 0),
                echo(type + ": without batches", flat(type), type, 2, 3),
                echo(type + ": without batches and elements", flat(type), type, 0, 4));
    }

    private static Scenario echo(String name, String model, String type, long... shape) {
        int elements = 1;
        for (long dim : shape) {
            elements = Math.toIntExact(elements * dim);
        }
        return Scenario.of(name, model).in("INPUT0", type, content(type, elements), shape);
    }

    private static byte[] content(String type, int elements) {
        if (type.equals("BYTES")) {
            String[] words = new String[elements];
            for (int i = 0; i < elements; i++) {
                words[i] = "word".substring(i % 5) + i;
            }
            return TensorBytes.strings(words);
        }
        long[] bits = new long[elements];
        for (int i = 0; i < elements; i++) {
            bits[i] = switch (type) {
                case "BOOL" -> i % 2;
                case "FP16" -> Float.floatToFloat16(i * 0.3f - 1);
                case "BF16" -> Float.floatToRawIntBits(i * 0.3f - 1) >>> Short.SIZE;
                case "FP32" -> Float.floatToRawIntBits(i * 0.3f - 1);
                case "FP64" -> Double.doubleToRawLongBits(i * 0.3 - 1);
                default -> i * 37L - (type.startsWith("U") ? 0 : 50);
            };
        }
        return tensor(type, bits);
    }

    /** The minimum, the maximum and special values of every type. */
    private static Stream<Scenario> edges() {
        return Stream.of(
                edge("BOOL", 0, 1),
                edge("UINT8", 0, 1, 0x7F, 0x80, 0xFF),
                edge("UINT16", 0, 1, 0x7FFF, 0x8000, 0xFFFF),
                edge("UINT32", 0, 1, 0x7FFF_FFFF, 0x8000_0000L, 0xFFFF_FFFFL),
                edge("UINT64", 0, 1, Long.MAX_VALUE, Long.MIN_VALUE, -1),
                edge("INT8", 0, -1, Byte.MAX_VALUE, Byte.MIN_VALUE),
                edge("INT16", 0, -1, Short.MAX_VALUE, Short.MIN_VALUE),
                edge("INT32", 0, -1, Integer.MAX_VALUE, Integer.MIN_VALUE),
                edge("INT64", 0, -1, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 53, (1L << 53) + 1),
                // One, minus zero, the smallest number, the smallest and the largest normal number, the infinities,
                // NaN.
                edge("FP16", 0x3C00, 0x8000, 0x0001, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x2E66),
                edge("BF16", 0x3F80, 0x8000, 0x0001, 0x0080, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x3DCD),
                edge(
                        "FP32",
                        0x3F80_0000,
                        0x8000_0000L,
                        1,
                        0x0080_0000,
                        0x7F7F_FFFF,
                        0x7F80_0000,
                        0xFF80_0000L,
                        0x7FC0_0000,
                        0x3DCC_CCCD,
                        0x4B80_0001,
                        0x007F_FFFF),
                edge(
                        "FP64",
                        0x3FF0_0000_0000_0000L,
                        Long.MIN_VALUE,
                        1,
                        0x0010_0000_0000_0000L,
                        0x7FEF_FFFF_FFFF_FFFFL,
                        0x7FF0_0000_0000_0000L,
                        0xFFF0_0000_0000_0000L,
                        0x7FF8_0000_0000_0000L,
                        0x3FB9_9999_9999_999AL),
                marked("FP16", 0x7E01),
                marked("BF16", 0xFFC1),
                marked("FP32", 0x7FC0_0001),
                marked("FP64", 0xFFF8_0000_0000_0001L));
    }

    private static Scenario edge(String type, long... bits) {
        return Scenario.of(type + ": edges", batching(type)).in("INPUT0", type, tensor(type, bits), 1, bits.length);
    }

    private static Scenario marked(String type, long bits) {
        return Scenario.of(type + ": no number, with a mark", batching(type))
                .in("INPUT0", type, tensor(type, bits), 1, 1)
                .not("the protocol's JSON has one form for all NaN", HTTP_JSON);
    }

    private static byte[] tensor(String type, long... bits) {
        int size = type.equals("BOOL") ? 1 : Integer.parseInt(type.replaceAll("\\D", "")) / Byte.SIZE;
        ByteBuffer bytes = ByteBuffer.allocate(bits.length * size).order(ByteOrder.LITTLE_ENDIAN);
        for (long value : bits) {
            for (int i = 0; i < size; i++) {
                bytes.put((byte) (value >>> (i * Byte.SIZE)));
            }
        }
        return bytes.array();
    }
}
