package dev.nereid.backend.python.execute;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The names of inputs and outputs of a model, by which frames name tensors. Immutable. */
public final class ModelTensors {
    private final List<String> inputs;
    private final List<String> outputs;
    private final Map<String, Integer> inputIndexes;
    private final Map<String, Integer> outputIndexes;

    /** Creates the tables. The inputs are all that requests may carry: configured inputs, controls and states. */
    public ModelTensors(List<String> inputs, List<String> outputs) {
        this.inputs = List.copyOf(inputs);
        this.outputs = List.copyOf(outputs);
        inputIndexes = indexes(this.inputs);
        outputIndexes = indexes(this.outputs);
    }

    private static Map<String, Integer> indexes(List<String> names) {
        Map<String, Integer> indexes = HashMap.newHashMap(names.size());
        for (String name : names) {
            indexes.putIfAbsent(name, indexes.size());
        }
        return indexes;
    }

    /** Returns the names of the inputs, in the order of their indexes. */
    public List<String> inputs() {
        return inputs;
    }

    /** Returns the names of the outputs, in the order of their indexes. */
    public List<String> outputs() {
        return outputs;
    }

    /** Returns the index of an input, or {@code null} for one that is not in the table. */
    @Nullable
    Integer inputIndex(String name) {
        return inputIndexes.get(name);
    }

    /** Returns the index of an output, or {@code null} for one that is not in the table. */
    @Nullable
    Integer outputIndex(String name) {
        return outputIndexes.get(name);
    }
}
