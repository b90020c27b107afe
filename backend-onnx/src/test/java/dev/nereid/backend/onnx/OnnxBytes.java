package dev.nereid.backend.onnx;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes models with the values of tensors in other files, also such as no exporter writes. Stateless. */
final class OnnxBytes {
    static final int FLOAT = 1;
    private static final int SIZE = 4;

    private OnnxBytes() {}

    /** Returns a model: {@code output [4] = input [4] + weights}, of which the values are in a file. */
    static byte[] inGraph(byte[] weights) {
        return model(join(node("Add", "input", "weights", "output"), field(5, weights)));
    }

    /** Returns the same model with the weights in the attribute of a node. */
    static byte[] inAttribute(byte[] weights) {
        byte[] attribute = join(text(1, "value"), field(5, weights), number(20, 4));
        byte[] constant = join(text(2, "weights"), text(4, "Constant"), field(5, attribute));
        return model(join(field(1, constant), node("Add", "input", "weights", "output")));
    }

    /** Returns the same model with the weights in the branches of a condition. */
    static byte[] inSubgraph(byte[] weights) {
        byte[] branch =
                join(node("Add", "input", "weights", "y"), text(2, "branch"), field(5, weights), tensor(12, "y"));
        byte[] node = join(
                text(1, "condition"),
                text(2, "output"),
                text(4, "If"),
                field(5, join(text(1, "then_branch"), field(6, branch), number(20, 5))),
                field(5, join(text(1, "else_branch"), field(6, branch), number(20, 5))));
        byte[] condition = join(number(2, 9), text(8, "condition"), field(9, new byte[] {1}));
        return model(join(field(1, node), field(5, condition)));
    }

    /** Returns four numbers in a file. */
    static byte[] external(String location) {
        return external(location, "0", "16");
    }

    static byte[] external(String location, String offset, String length) {
        return external(location, offset, length, SIZE);
    }

    static byte[] external(String location, String offset, String length, long size) {
        return join(
                number(1, size),
                number(2, FLOAT),
                text(8, "weights"),
                field(13, join(text(1, "location"), text(2, location))),
                field(13, join(text(1, "offset"), text(2, offset))),
                field(13, join(text(1, "length"), text(2, length))),
                number(14, 1));
    }

    private static byte[] model(byte[] graph) {
        byte[] whole = join(graph, text(2, "graph"), tensor(11, "input"), tensor(12, "output"));
        return join(number(1, 7), field(8, number(2, 13)), field(7, whole));
    }

    private static byte[] node(String operator, String first, String second, String output) {
        return field(1, join(text(1, first), text(1, second), text(2, output), text(4, operator)));
    }

    private static byte[] tensor(int field, String name) {
        byte[] shape = field(1, number(1, SIZE));
        return field(field, join(text(1, name), field(2, field(1, join(number(1, FLOAT), field(2, shape))))));
    }

    static byte[] text(int field, String value) {
        return field(field, value.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] field(int field, byte[] value) {
        return join(varint((long) field << 3 | 2), varint(value.length), value);
    }

    static byte[] number(int field, long value) {
        return join(varint((long) field << 3), varint(value));
    }

    static byte[] join(byte[]... parts) {
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            joined.writeBytes(part);
        }
        return joined.toByteArray();
    }

    private static byte[] varint(long value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        long rest = value;
        while ((rest & ~0x7fL) != 0) {
            bytes.write(((int) rest & 0x7f) | 0x80);
            rest >>>= 7;
        }
        bytes.write((int) rest);
        return bytes.toByteArray();
    }
}
