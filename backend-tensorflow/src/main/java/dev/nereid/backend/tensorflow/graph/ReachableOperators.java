package dev.nereid.backend.tensorflow.graph;

import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.tensorflow.proto.AttrValue;
import org.tensorflow.proto.FunctionDef;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NodeDef;
import org.tensorflow.proto.TensorProto;

/** Collects the operations that lead to tensors of a graph. Confined to one reading of a file. */
final class ReachableOperators {
    private final Map<String, NodeDef> nodes = new HashMap<>();
    private final Map<String, FunctionDef> functions = new HashMap<>();
    private final Set<String> types = new HashSet<>();
    private final Set<String> visited = new HashSet<>();
    private final Set<String> visitedFunctions = new HashSet<>();
    private long weightBytes;

    ReachableOperators(GraphDef graph) {
        for (NodeDef node : graph.getNodeList()) {
            nodes.put(node.getName(), node);
        }
        for (FunctionDef function : graph.getLibrary().getFunctionList()) {
            functions.put(function.getSignature().getName(), function);
        }
    }

    /** Returns the operations that lead to {@code tensors}, such as {@code scores:0}. */
    GraphOperators of(Collection<String> tensors) {
        Deque<String> open = new ArrayDeque<>(tensors);
        while (!open.isEmpty()) {
            NodeDef node = nodes.get(nodeName(open.removeLast()));
            if (node != null && visited.add(node.getName())) {
                add(node);
                open.addAll(node.getInputList());
            }
        }
        return new GraphOperators(types, weightBytes);
    }

    boolean contains(String node) {
        return visited.contains(node);
    }

    /** The node of an input, such as {@code ^name} or {@code name:1}. */
    static String nodeName(String tensor) {
        int start = tensor.startsWith("^") ? 1 : 0;
        int colon = tensor.indexOf(':');
        return colon < 0 ? tensor.substring(start) : tensor.substring(start, colon);
    }

    private void add(NodeDef node) {
        types.add(node.getOp());
        addFunction(node.getOp());
        for (AttrValue value : node.getAttrMap().values()) {
            addFunction(value.getFunc().getName());
            value.getList().getFuncList().forEach(function -> addFunction(function.getName()));
            if (value.hasTensor()) {
                TensorProto tensor = value.getTensor();
                weightBytes += tensor.getSerializedSize();
            }
        }
    }

    /** Adds all of a function's operations: which of them its results need is not looked at. */
    private void addFunction(String name) {
        FunctionDef function = functions.get(name);
        if (function != null && visitedFunctions.add(name)) {
            function.getNodeDefList().forEach(this::add);
        }
    }
}
