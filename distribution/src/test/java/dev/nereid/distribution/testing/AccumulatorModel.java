package dev.nereid.distribution.testing;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.UnknownFieldSet.Field;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * An ONNX model that adds up the inputs of a sequence: OUTPUT and STATE_OUT are INPUT at its start, and else INPUT +
 * STATE_IN. START is a BOOL, the others are INT32, all with the shape [n, 1].
 */
public final class AccumulatorModel {
    private static final int INT32 = 6;
    private static final int BOOL = 9;
    private static final int IR_VERSION = 8;
    private static final int OPERATOR_SET = 13;

    private AccumulatorModel() {}

    /**
     * Returns the configuration of a model.
     *
     * @param batching what {@code sequence_batching} has beside control input and state
     */
    public static String config(int maxBatchSize, int instances, String batching) {
        return """
                backend: "onnxruntime"
                max_batch_size: %d
                input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
                output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
                sequence_batching {
                  %s
                  control_input {
                    name: "START"
                    control { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] }
                  }
                  state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ 1 ] }
                }
                instance_group { count: %d kind: KIND_CPU }
                """.formatted(maxBatchSize, batching, instances);
    }

    /** Writes version 1 of a model. */
    public static void write(Repository repository, String model) {
        try {
            Path directory = Files.createDirectories(
                    repository.directory().resolve(model).resolve("1"));
            Files.write(directory.resolve("model.onnx"), bytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static byte[] bytes() {
        UnknownFieldSet.Builder graph = UnknownFieldSet.newBuilder();
        add(graph, 1, node("Add", "SUM", "INPUT", "STATE_IN")); // GraphProto.node
        add(graph, 1, node("Where", "OUTPUT", "START", "INPUT", "SUM"));
        add(graph, 1, node("Identity", "STATE_OUT", "OUTPUT"));
        add(graph, 2, "accumulator"); // name
        add(graph, 11, value("INPUT", INT32)); // input
        add(graph, 11, value("START", BOOL));
        add(graph, 11, value("STATE_IN", INT32));
        add(graph, 12, value("OUTPUT", INT32)); // output
        add(graph, 12, value("STATE_OUT", INT32));
        UnknownFieldSet.Builder operators = UnknownFieldSet.newBuilder();
        add(operators, 2, OPERATOR_SET); // OperatorSetIdProto.version
        UnknownFieldSet.Builder model = UnknownFieldSet.newBuilder();
        add(model, 1, IR_VERSION); // ModelProto.ir_version
        add(model, 7, graph); // graph
        add(model, 8, operators); // opset_import
        return model.build().toByteArray();
    }

    private static UnknownFieldSet.Builder node(String operator, String output, String... inputs) {
        UnknownFieldSet.Builder node = UnknownFieldSet.newBuilder();
        for (String input : inputs) {
            add(node, 1, input); // NodeProto.input
        }
        add(node, 2, output); // output
        add(node, 4, operator); // op_type
        return node;
    }

    private static UnknownFieldSet.Builder value(String name, int type) {
        UnknownFieldSet.Builder batch = UnknownFieldSet.newBuilder();
        add(batch, 2, "batch"); // Dimension.dim_param
        UnknownFieldSet.Builder one = UnknownFieldSet.newBuilder();
        add(one, 1, 1); // Dimension.dim_value
        UnknownFieldSet.Builder shape = UnknownFieldSet.newBuilder();
        add(shape, 1, batch); // TensorShapeProto.dim
        add(shape, 1, one);
        UnknownFieldSet.Builder tensor = UnknownFieldSet.newBuilder();
        add(tensor, 1, type); // TypeProto.Tensor.elem_type
        add(tensor, 2, shape); // shape
        UnknownFieldSet.Builder union = UnknownFieldSet.newBuilder();
        add(union, 1, tensor); // TypeProto.tensor_type
        UnknownFieldSet.Builder info = UnknownFieldSet.newBuilder();
        add(info, 1, name); // ValueInfoProto.name
        add(info, 2, union); // type
        return info;
    }

    private static void add(UnknownFieldSet.Builder message, int number, UnknownFieldSet.Builder value) {
        add(message, number, value.build().toByteString());
    }

    private static void add(UnknownFieldSet.Builder message, int number, String value) {
        add(message, number, ByteString.copyFromUtf8(value));
    }

    private static void add(UnknownFieldSet.Builder message, int number, ByteString value) {
        message.mergeField(number, Field.newBuilder().addLengthDelimited(value).build());
    }

    private static void add(UnknownFieldSet.Builder message, int number, long value) {
        message.mergeField(number, Field.newBuilder().addVarint(value).build());
    }
}
