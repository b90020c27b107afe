package dev.nereid.backend.tensorflow.graph;

import java.util.List;
import java.util.regex.Pattern;
import org.tensorflow.proto.FunctionDef;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NodeDef;

/** Finds operations that map files into memory, where a file that is cut short ends the process. Stateless. */
final class MappedFiles {
    private static final Pattern MAPPING = Pattern.compile("ImmutableConst|(Experimental)?LMDB(Reader|Dataset)");

    private MappedFiles() {}

    /** Refuses a graph with such an operation, also in a function; the exception has its name. */
    static void refuse(GraphDef graph) throws GraphException {
        refuse(graph.getNodeList());
        for (FunctionDef function : graph.getLibrary().getFunctionList()) {
            refuse(function.getNodeDefList());
        }
    }

    private static void refuse(List<NodeDef> nodes) throws GraphException {
        for (NodeDef node : nodes) {
            if (MAPPING.matcher(node.getOp()).matches()) {
                throw new GraphException("operation '" + node.getName() + "' of type " + node.getOp()
                        + ": maps a file, which must not change while it is mapped (expected: constants or variables)");
            }
        }
    }
}
