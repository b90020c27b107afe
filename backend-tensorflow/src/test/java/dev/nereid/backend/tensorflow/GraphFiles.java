package dev.nereid.backend.tensorflow;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.tensorflow.proto.AttrValue;
import org.tensorflow.proto.DataType;
import org.tensorflow.proto.FunctionDef;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.proto.TensorShapeProto;

/** Writes frozen graphs message by message: also of types that TensorFlow Java has no class for. */
final class GraphFiles {
    /** Older graphs say with a shape of no dimensions that a placeholder has any. */
    private static final int PRODUCER = 1900;

    private final GraphDef.Builder graph = GraphDef.newBuilder();

    /** Adds an input; {@code null} for a shape of any rank. */
    GraphFiles placeholder(String name, DataType type, long... dims) {
        TensorShapeProto.Builder shape = TensorShapeProto.newBuilder();
        if (dims == null) {
            shape.setUnknownRank(true);
        } else {
            for (long dim : dims) {
                shape.addDimBuilder().setSize(dim);
            }
        }
        return add(NodeDef.newBuilder()
                .setName(name)
                .setOp("Placeholder")
                .putAttr("dtype", type(type))
                .putAttr("shape", AttrValue.newBuilder().setShape(shape).build()));
    }

    /** Adds an operation with one type. */
    GraphFiles operation(String name, String operation, DataType type, String... inputs) {
        NodeDef.Builder node =
                NodeDef.newBuilder().setName(name).setOp(operation).putAttr("T", type(type));
        for (String input : inputs) {
            node.addInput(input);
        }
        return add(node);
    }

    GraphFiles add(NodeDef.Builder node) {
        graph.addNode(node);
        return this;
    }

    /** Adds a function that operations call. */
    GraphFiles function(FunctionDef.Builder function) {
        graph.getLibraryBuilder().addFunction(function);
        return this;
    }

    static AttrValue type(DataType type) {
        return AttrValue.newBuilder().setType(type).build();
    }

    GraphDef graph() {
        graph.getVersionsBuilder().setProducer(PRODUCER);
        return graph.build();
    }

    void write(Path file) {
        try {
            Files.createDirectories(file.getParent());
            Files.write(file, graph().toByteArray());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
