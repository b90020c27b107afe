package dev.nereid.benchmarks.gpu;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;

/** A model of ONNX with a state: OUTPUT is INPUT plus STATE_IN, and the next state. Static functions only. */
final class SumModel {
    private static final int FLOAT = 1;

    private SumModel() {}

    /** Returns the content of the model's file. */
    static byte[] bytes() {
        UnknownFieldSet.Builder graph = UnknownFieldSet.newBuilder();
        add(graph, 1, node("Add", "OUTPUT", "INPUT", "STATE_IN")); // GraphProto.node
        add(graph, 1, node("Identity", "STATE_OUT", "OUTPUT"));
        add(graph, 2, text("sum")); // name
        add(graph, 11, value("INPUT")); // input
        add(graph, 11, value("STATE_IN"));
        add(graph, 12, value("OUTPUT")); // output
        add(graph, 12, value("STATE_OUT"));
        UnknownFieldSet.Builder operators = UnknownFieldSet.newBuilder();
        add(operators, 2, 13); // OperatorSetIdProto.version
        UnknownFieldSet.Builder model = UnknownFieldSet.newBuilder();
        add(model, 1, 8); // ModelProto.ir_version
        add(model, 7, graph.build().toByteString()); // graph
        add(model, 8, operators.build().toByteString()); // opset_import
        return model.build().toByteArray();
    }

    private static ByteString node(String type, String output, String... inputs) {
        UnknownFieldSet.Builder node = UnknownFieldSet.newBuilder();
        for (String input : inputs) {
            add(node, 1, text(input)); // NodeProto.input
        }
        add(node, 2, text(output)); // output
        add(node, 4, text(type)); // op_type
        return node.build().toByteString();
    }

    /** Describes a tensor of [batch, 1]. */
    private static ByteString value(String name) {
        UnknownFieldSet.Builder batch = UnknownFieldSet.newBuilder();
        add(batch, 2, text("batch")); // Dimension.dim_param
        UnknownFieldSet.Builder column = UnknownFieldSet.newBuilder();
        add(column, 1, 1); // Dimension.dim_value
        UnknownFieldSet.Builder shape = UnknownFieldSet.newBuilder();
        add(shape, 1, batch.build().toByteString()); // TensorShapeProto.dim
        add(shape, 1, column.build().toByteString());
        UnknownFieldSet.Builder tensor = UnknownFieldSet.newBuilder();
        add(tensor, 1, FLOAT); // TypeProto.Tensor.elem_type
        add(tensor, 2, shape.build().toByteString()); // shape
        UnknownFieldSet.Builder union = UnknownFieldSet.newBuilder();
        add(union, 1, tensor.build().toByteString()); // TypeProto.tensor_type
        UnknownFieldSet.Builder info = UnknownFieldSet.newBuilder();
        add(info, 1, text(name)); // ValueInfoProto.name
        add(info, 2, union.build().toByteString()); // type
        return info.build().toByteString();
    }

    private static ByteString text(String text) {
        return ByteString.copyFromUtf8(text);
    }

    private static void add(UnknownFieldSet.Builder message, int field, ByteString bytes) {
        message.mergeField(
                field,
                UnknownFieldSet.Field.newBuilder().addLengthDelimited(bytes).build());
    }

    private static void add(UnknownFieldSet.Builder message, int field, long number) {
        message.mergeField(
                field, UnknownFieldSet.Field.newBuilder().addVarint(number).build());
    }
}
