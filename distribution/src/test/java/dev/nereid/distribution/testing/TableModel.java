package dev.nereid.distribution.testing;

import static dev.nereid.distribution.testing.MessageFields.add;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.UnknownFieldSet.Field;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * ONNX models of any size whose responses say which file they were loaded from. OUTPUT0 is the element of a table at
 * the index INPUT0: 1000 times the number of the table, plus the index modulo 16.
 */
public final class TableModel {
    private static final int PERIOD = 16;
    private static final int FLOAT = 1;
    private static final int INT64 = 7;
    private static final int IR_VERSION = 8;
    private static final int OPERATOR_SET = 13;

    private TableModel() {}

    /** Returns the configuration of a model. */
    public static String config(String more) {
        return """
                backend: "onnxruntime"
                max_batch_size: 8
                input { name: "INPUT0" data_type: TYPE_INT64 dims: [ -1 ] }
                output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
                """ + more;
    }

    /** Returns the element of a table that a model responds with. */
    public static float element(long table, long index) {
        return 1000f * table + index % PERIOD;
    }

    /** Writes a version of a model. Its table has that version's number. */
    public static void write(Repository repository, String model, long version, int elements) {
        Path directory = repository.directory().resolve(model).resolve(Long.toString(version));
        try {
            Files.createDirectories(directory);
            Files.write(directory.resolve("model.onnx"), bytes(version, elements));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns a model, as in a file. */
    public static byte[] bytes(long table, int elements) {
        ByteBuffer data = ByteBuffer.allocate(elements * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < elements; i++) {
            data.putFloat(element(table, i));
        }
        UnknownFieldSet.Builder graph = UnknownFieldSet.newBuilder();
        add(graph, 1, node()); // GraphProto.node
        add(graph, 2, "table"); // name
        add(graph, 5, initializer(ByteString.copyFrom(data.flip()), elements)); // initializer
        add(graph, 11, value("INPUT0", INT64)); // input
        add(graph, 12, value("OUTPUT0", FLOAT)); // output
        UnknownFieldSet.Builder operators = UnknownFieldSet.newBuilder();
        add(operators, 2, OPERATOR_SET); // OperatorSetIdProto.version
        UnknownFieldSet.Builder model = UnknownFieldSet.newBuilder();
        add(model, 1, IR_VERSION); // ModelProto.ir_version
        add(model, 7, graph); // graph
        add(model, 8, operators); // opset_import
        return model.build().toByteArray();
    }

    private static UnknownFieldSet.Builder node() {
        UnknownFieldSet.Builder node = UnknownFieldSet.newBuilder();
        node.addField(
                1, // NodeProto.input
                Field.newBuilder()
                        .addLengthDelimited(ByteString.copyFromUtf8("TABLE"))
                        .addLengthDelimited(ByteString.copyFromUtf8("INPUT0"))
                        .build());
        add(node, 2, "OUTPUT0"); // output
        add(node, 4, "Gather"); // op_type
        return node;
    }

    private static UnknownFieldSet.Builder initializer(ByteString data, int elements) {
        UnknownFieldSet.Builder tensor = UnknownFieldSet.newBuilder();
        add(tensor, 1, elements); // TensorProto.dims
        add(tensor, 2, FLOAT); // data_type
        add(tensor, 8, "TABLE"); // name
        add(tensor, 9, data); // raw_data
        return tensor;
    }

    private static UnknownFieldSet.Builder value(String name, int type) {
        UnknownFieldSet.Builder shape = UnknownFieldSet.newBuilder();
        for (String dimension : new String[] {"batch", "length"}) {
            UnknownFieldSet.Builder dim = UnknownFieldSet.newBuilder();
            add(dim, 2, dimension); // Dimension.dim_param
            add(shape, 1, dim); // TensorShapeProto.dim
        }
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
}
