package dev.nereid.backend.tensorflow.graph;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Operations that keep their inputs: a graph with one gets copies. */
class GraphOperatorsTest {
    private static GraphOperators only(String type) {
        return new GraphOperators(Set.of(type, "Identity"), 0);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "AssignVariableOp",
                "QueueEnqueueV2",
                "LookupTableInsertV2",
                "LookupTableImportV2",
                "InitializeTable",
                "InitializeTableV2",
                "AddManySparseToTensorsMap",
                "TensorSliceDataset",
                "MakeIterator",
                "ResourceScatterUpdate"
            })
    void keepsInputs(String type) {
        assertThat(only(type).keepsInputs()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"MatMul", "LookupTableFindV2", "ReadVariableOp", "GatherV2", "Placeholder"})
    void keepsNone(String type) {
        assertThat(only(type).keepsInputs()).isFalse();
    }
}
