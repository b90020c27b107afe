package dev.nereid.distribution.testing;

import static dev.nereid.distribution.testing.MessageFields.add;

import com.google.protobuf.ByteString;
import com.google.protobuf.UnknownFieldSet;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * An ONNX model with the state of the documents: at START the state becomes INPUT, else the sum of state and INPUT.
 * OUTPUT is the new state, and ID the id of the sequence.
 *
 * @param flagType the type of START in a configuration: {@code INT32}, {@code FP32} or {@code BOOL}
 * @param idType the type of the id
 * @param flat whether START and the id have the one dimension of the documents, else {@code [n, 1]}
 */
public record AccumulatorModel(String flagType, String idType, boolean flat) {
    private static final int FLOAT = 1;
    private static final int INT64 = 7;
    private static final int BOOL = 9;

    /** The types of ONNX, by their number. */
    private static final List<String> TYPES = List.of(
            "", "FP32", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FP16", "FP64",
            "UINT32", "UINT64");

    /**
     * Adds the model to a repository.
     *
     * @param strategy the strategy, in the words of the configuration
     * @param listed whether the state is an output too, STATE_OUT
     */
    public void addTo(Repository repository, String name, String strategy, boolean listed) {
        addTo(repository, name, config(strategy, listed, 4) + "instance_group { kind: KIND_CPU }\n");
    }

    /**
     * Adds the model to a repository.
     *
     * @param strategy the strategy, in the words of the configuration
     */
    public void addTo(Repository repository, String name, String strategy, int maxBatchSize, int instances) {
        addTo(
                repository,
                name,
                config(strategy, false, maxBatchSize)
                        + "instance_group { count: %d kind: KIND_CPU }\n".formatted(instances));
    }

    private void addTo(Repository repository, String name, String config) {
        repository.model(name, config);
        try {
            Path file = repository.directory().resolve(name).resolve("1/model.onnx");
            Files.write(file, bytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private String config(String strategy, boolean listed, int maxBatchSize) {
        String values = flagType.toLowerCase(Locale.ROOT) + "_false_true: [ "
                + (flagType.equals("BOOL") ? "false, true" : "0, 1") + " ]";
        return """
                backend: "onnxruntime"
                max_batch_size: %d
                input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
                output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }
                output { name: "ID" data_type: TYPE_%s dims: [ 1 ] }
                %s
                sequence_batching {
                  %s
                  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START %s } }
                  control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_%s } }
                  state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }
                }
                """.formatted(
                        maxBatchSize,
                        idType,
                        listed ? "output { name: \"STATE_OUT\" data_type: TYPE_FP32 dims: [ 1 ] }" : "",
                        strategy,
                        values,
                        idType);
    }

    private byte[] bytes() {
        UnknownFieldSet.Builder graph = UnknownFieldSet.newBuilder();
        UnknownFieldSet.Builder cast = node("Cast", "IS_START", "START");
        add(cast, 5, toBool()); // NodeProto.attribute
        add(graph, 1, cast);
        add(graph, 1, node("Reshape", "IS_START_ROWS", "IS_START", "ROWS"));
        add(graph, 1, node("Add", "SUM", "INPUT", "STATE_IN"));
        add(graph, 1, node("Where", "OUTPUT", "IS_START_ROWS", "INPUT", "SUM"));
        add(graph, 1, node("Identity", "STATE_OUT", "OUTPUT"));
        add(graph, 1, node("Reshape", "ID", "CORRID", "ROWS"));
        add(graph, 2, "accumulator"); // GraphProto.name
        add(graph, 5, rows()); // initializer
        add(graph, 11, value("INPUT", FLOAT, false)); // input
        add(graph, 11, value("STATE_IN", FLOAT, false));
        add(graph, 11, value("START", TYPES.indexOf(flagType), flat));
        add(graph, 11, value("CORRID", TYPES.indexOf(idType), flat));
        add(graph, 12, value("OUTPUT", FLOAT, false)); // output
        add(graph, 12, value("STATE_OUT", FLOAT, false));
        add(graph, 12, value("ID", TYPES.indexOf(idType), false));
        UnknownFieldSet.Builder operators = UnknownFieldSet.newBuilder();
        add(operators, 2, 13); // OperatorSetIdProto.version
        UnknownFieldSet.Builder model = UnknownFieldSet.newBuilder();
        add(model, 1, 8); // ModelProto.ir_version
        add(model, 7, graph); // graph
        add(model, 8, operators); // opset_import
        return model.build().toByteArray();
    }

    private static UnknownFieldSet.Builder node(String type, String output, String... inputs) {
        UnknownFieldSet.Builder node = UnknownFieldSet.newBuilder();
        for (String input : inputs) {
            add(node, 1, input); // NodeProto.input
        }
        add(node, 2, output); // output
        add(node, 4, type); // op_type
        return node;
    }

    private static UnknownFieldSet.Builder toBool() {
        UnknownFieldSet.Builder attribute = UnknownFieldSet.newBuilder();
        add(attribute, 1, "to"); // AttributeProto.name
        add(attribute, 3, BOOL); // i
        add(attribute, 20, 2); // type: INT
        return attribute;
    }

    /** Returns the shape [-1, 1]. */
    private static UnknownFieldSet.Builder rows() {
        ByteBuffer data = ByteBuffer.allocate(2 * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        data.putLong(-1).putLong(1);
        UnknownFieldSet.Builder tensor = UnknownFieldSet.newBuilder();
        add(tensor, 1, 2); // TensorProto.dims
        add(tensor, 2, INT64); // data_type
        add(tensor, 8, "ROWS"); // name
        ByteString bytes = ByteString.copyFrom(data.flip());
        add(tensor, 9, bytes); // raw_data
        return tensor;
    }

    private static UnknownFieldSet.Builder value(String name, int type, boolean oneDimension) {
        UnknownFieldSet.Builder shape = UnknownFieldSet.newBuilder();
        UnknownFieldSet.Builder batch = UnknownFieldSet.newBuilder();
        add(batch, 2, "batch"); // Dimension.dim_param
        add(shape, 1, batch); // TensorShapeProto.dim
        if (!oneDimension) {
            UnknownFieldSet.Builder one = UnknownFieldSet.newBuilder();
            add(one, 1, 1); // Dimension.dim_value
            add(shape, 1, one);
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
