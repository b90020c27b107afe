package dev.nereid.backend.tensorflow;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Writes a perceptron with one hidden layer as an ONNX model, field by field. */
final class OnnxFile {
    private static final int IR_VERSION = 8;
    private static final int OPSET = 14;
    private static final int FLOAT = 1;

    /** Writes the fields of a message. */
    private interface Fields {
        void write(CodedOutputStream out) throws IOException;
    }

    private OnnxFile() {}

    /** Returns the model {@code scores = softmax(relu(pixels * w1 + b1) * w2 + b2)}. */
    static byte[] perceptron(float[][] w1, float[] b1, float[][] w2, float[] b2) throws IOException {
        return bytes(model -> {
            model.writeInt64(1, IR_VERSION);
            model.writeByteArray(7, bytes(graph -> {
                node(graph, "MatMul", "hidden_product", "pixels", "w1");
                node(graph, "Add", "hidden_sum", "hidden_product", "b1");
                node(graph, "Relu", "hidden", "hidden_sum");
                node(graph, "MatMul", "product", "hidden", "w2");
                node(graph, "Add", "logits", "product", "b2");
                node(graph, "Softmax", "scores", "logits");
                graph.writeString(2, "perceptron");
                initializer(graph, "w1", flat(w1), w1.length, w1[0].length);
                initializer(graph, "b1", b1, b1.length);
                initializer(graph, "w2", flat(w2), w2.length, w2[0].length);
                initializer(graph, "b2", b2, b2.length);
                graph.writeByteArray(11, tensor("pixels", w1.length));
                graph.writeByteArray(12, tensor("scores", b2.length));
            }));
            model.writeByteArray(8, bytes(opset -> opset.writeInt64(2, OPSET)));
        });
    }

    private static void node(CodedOutputStream graph, String type, String output, String... inputs) throws IOException {
        graph.writeByteArray(1, bytes(node -> {
            for (String input : inputs) {
                node.writeString(1, input);
            }
            node.writeString(2, output);
            node.writeString(4, type);
        }));
    }

    private static void initializer(CodedOutputStream graph, String name, float[] values, long... dims)
            throws IOException {
        graph.writeByteArray(5, bytes(tensor -> {
            for (long dim : dims) {
                tensor.writeInt64(1, dim);
            }
            tensor.writeInt32(2, FLOAT);
            tensor.writeString(8, name);
            ByteBuffer raw = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            raw.asFloatBuffer().put(values);
            tensor.writeBytes(9, ByteString.copyFrom(raw.array()));
        }));
    }

    /** Describes a tensor of any number of rows. */
    private static byte[] tensor(String name, long columns) throws IOException {
        byte[] shape = bytes(dims -> {
            dims.writeByteArray(1, bytes(dim -> dim.writeString(2, "batch")));
            dims.writeByteArray(1, bytes(dim -> dim.writeInt64(1, columns)));
        });
        byte[] type = bytes(tensor -> {
            tensor.writeInt32(1, FLOAT);
            tensor.writeByteArray(2, shape);
        });
        return bytes(value -> {
            value.writeString(1, name);
            value.writeByteArray(2, bytes(kind -> kind.writeByteArray(1, type)));
        });
    }

    private static float[] flat(float[][] rows) {
        float[] all = new float[rows.length * rows[0].length];
        for (int i = 0; i < rows.length; i++) {
            System.arraycopy(rows[i], 0, all, i * rows[0].length, rows[0].length);
        }
        return all;
    }

    private static byte[] bytes(Fields fields) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        CodedOutputStream out = CodedOutputStream.newInstance(bytes);
        fields.write(out);
        out.flush();
        return bytes.toByteArray();
    }
}
