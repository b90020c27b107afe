package dev.nereid.backend.tensorflow.graph;

import dev.nereid.backend.tensorflow.capi.TfDataType;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.proto.TensorShapeProto;

/** Reads a frozen graph, which has operations and no signature. Stateless. */
public final class GraphDefReader {
    private static final String PLACEHOLDER = "Placeholder";
    /** Operations without results, or for training: nobody wants them as outputs. */
    private static final Set<String> NO_OUTPUTS =
            Set.of("NoOp", "Const", "Assert", "Print", "SaveV2", "Assign", PLACEHOLDER, "PlaceholderV2");

    private GraphDefReader() {}

    /** Loads the graph from its file's content. */
    public interface Loader<T, E extends Exception> {
        /** Loads a serialized graph, which is valid during the call. */
        T load(MemorySegment content) throws E;
    }

    /**
     * Reads a graph; without {@code outputs} by name they are the results that no operation uses.
     *
     * @throws GraphException if the file is no graph
     */
    public static GraphModel read(Path file, List<String> outputs) throws GraphException {
        try (Arena arena = Arena.ofConfined()) {
            GraphDef graph = Messages.parse(Messages.read(file, arena), GraphDef.getDefaultInstance());
            if (graph.getNodeCount() == 0) {
                throw new GraphException("graph: without operations (expected: a frozen GraphDef)");
            }
            MappedFiles.refuse(graph);
            List<GraphTensor> ends = outputs.isEmpty() ? ends(graph) : named(outputs);
            ReachableOperators reachable = new ReachableOperators(graph);
            GraphOperators operators =
                    reachable.of(ends.stream().map(GraphTensor::tensor).toList());
            return new GraphModel("", placeholders(graph, reachable), ends, operators);
        } catch (IOException e) {
            throw new GraphException("graph: damaged or cut short (expected: a frozen GraphDef): " + e.getMessage(), e);
        }
    }

    public static <T, E extends Exception> T load(Path file, Loader<T, E> loader) throws IOException, E {
        try (Arena arena = Arena.ofConfined()) {
            return loader.load(Messages.read(file, arena));
        }
    }

    /** The placeholders that the outputs depend on; others need no value. */
    private static List<GraphTensor> placeholders(GraphDef graph, ReachableOperators reachable) {
        List<GraphTensor> inputs = new ArrayList<>();
        for (NodeDef node : graph.getNodeList()) {
            if (node.getOp().equals(PLACEHOLDER) && reachable.contains(node.getName())) {
                TfDataType type = TfDataType.of(
                        node.containsAttr("dtype")
                                ? node.getAttrOrThrow("dtype").getTypeValue()
                                : 0);
                inputs.add(new GraphTensor(node.getName(), node.getName() + ":0", type, shape(node)));
            }
        }
        return inputs;
    }

    private static Optional<long[]> shape(NodeDef node) {
        if (!node.containsAttr("shape")
                || node.getAttrOrThrow("shape").getShape().getUnknownRank()) {
            return Optional.empty();
        }
        return Optional.of(node.getAttrOrThrow("shape").getShape().getDimList().stream()
                .mapToLong(TensorShapeProto.Dim::getSize)
                .toArray());
    }

    /** The results that no other operation uses. Types and shapes are known when the graph is loaded. */
    private static List<GraphTensor> ends(GraphDef graph) {
        Set<String> used = new HashSet<>();
        for (NodeDef node : graph.getNodeList()) {
            node.getInputList().forEach(input -> used.add(ReachableOperators.nodeName(input)));
        }
        List<String> names = new ArrayList<>();
        for (NodeDef node : graph.getNodeList()) {
            if (!used.contains(node.getName()) && !NO_OUTPUTS.contains(node.getOp())) {
                names.add(node.getName());
            }
        }
        return named(names);
    }

    private static List<GraphTensor> named(List<String> names) {
        return names.stream()
                .map(name -> new GraphTensor(
                        name, name.indexOf(':') < 0 ? name + ":0" : name, TfDataType.UNKNOWN, Optional.empty()))
                .toList();
    }
}
