package dev.nereid.backend.tensorflow.graph;

import java.util.List;

/**
 * Description of a model from its files. Immutable.
 *
 * @param signature the name of the signature; empty for a graph without signatures
 * @param inputs the inputs in the order of their names, or of the graph
 * @param outputs the outputs, likewise
 * @param operators the operations that lead to the outputs, and facts that follow from them
 */
public record GraphModel(
        String signature, List<GraphTensor> inputs, List<GraphTensor> outputs, GraphOperators operators) {
    public GraphModel {
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }
}
