package dev.nereid.backend.tensorflow.capi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.tensorflow.TensorFlowJava;
import dev.nereid.backend.tensorflow.graph.Executor;
import dev.nereid.backend.tensorflow.graph.SessionConfig;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.tensorflow.proto.AttrValue;
import org.tensorflow.proto.DataType;
import org.tensorflow.proto.GraphDef;
import org.tensorflow.proto.NodeDef;

/** The order of calls, and what is refused before it reaches native code. */
class TfExecutionTest {
    private final Arena arena = Arena.ofShared();
    private TfSession session;

    @BeforeEach
    void open() throws TfException {
        AttrValue type = AttrValue.newBuilder().setType(DataType.DT_FLOAT).build();
        byte[] graph = GraphDef.newBuilder()
                .addNode(NodeDef.newBuilder().setName("x").setOp("Placeholder").putAttr("dtype", type))
                .addNode(NodeDef.newBuilder()
                        .setName("y")
                        .setOp("Square")
                        .putAttr("T", type)
                        .addInput("x"))
                .build()
                .toByteArray();
        byte[] config = new SessionConfig(Executor.SINGLE_THREADED, 2, 0, false, true).serialized();
        session =
                TfSession.openGraph(TensorFlowJava.library(), arena.allocateFrom(ValueLayout.JAVA_BYTE, graph), config);
    }

    @AfterEach
    void close() {
        session.close();
        arena.close();
    }

    private TfExecution execution() {
        return session.newExecution(List.of("x:0"), List.of("y:0"));
    }

    private MemorySegment floats(float... values) {
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, values);
    }

    @Test
    void runsAgainAndAgain() throws TfException {
        try (TfExecution execution = execution()) {
            for (int i = 1; i < 5; i++) {
                execution.begin();
                execution.input(0, floats(i, 2 * i), 2);
                execution.output(0);
                execution.run();
                try (TfTensor y = execution.takeOutput(0)) {
                    execution.end();
                    assertThat(y.shape()).containsExactly(2);
                    assertThat(y.type()).isEqualTo(TfDataType.FLOAT);
                    assertThat(y.data().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(i * i, 4 * i * i);
                }
            }
        }
    }

    @Test
    void outputsOutliveExecutionAndSession() throws TfException {
        TfExecution execution = execution();
        execution.begin();
        execution.input(0, floats(3), 1);
        execution.output(0);
        execution.run();
        TfTensor y = execution.takeOutput(0);
        execution.end();
        execution.close();
        session.close();

        assertThat(y.data().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(9);
        y.close();
        y.close();
        assertThatThrownBy(y::data).hasMessage("tensor: closed (expected: open)");
    }

    @Test
    void refusesCallsOutOfOrder() throws TfException {
        TfExecution execution = execution();
        assertThatThrownBy(execution::run).hasMessage("execution: idle (expected: begun)");
        assertThatThrownBy(() -> execution.output(0)).hasMessage("execution: idle (expected: begun)");
        execution.end();
        execution.begin();
        assertThatThrownBy(execution::begin).hasMessage("execution: running (expected: idle)");
        assertThatThrownBy(() -> execution.takeOutput(0)).hasMessageStartingWith("output 0: not available");
        execution.close(); // is released by its end
        execution.end();
        assertThatThrownBy(execution::begin).hasMessage("execution: closed (expected: idle)");
    }

    @Test
    void refusesMemoryThatDoesNotFit() {
        try (TfExecution execution = execution()) {
            execution.begin();
            assertThatThrownBy(() -> execution.input(0, floats(1, 2), 3))
                    .hasMessage("8 bytes (expected: 12 for 3 elements of DT_FLOAT)");
            assertThatThrownBy(() -> execution.input(0, MemorySegment.ofArray(new float[1]), 1))
                    .hasMessage("memory on the heap (expected: native memory)");
            assertThatThrownBy(() -> execution.input(0, floats(1), -1)).hasMessage("dimension: -1 (expected: >= 0)");
            assertThatThrownBy(() -> execution.copiedInput(0, floats(1), 2)).hasMessageStartingWith("4 bytes");
            long[] dims = new long[255];
            Arrays.fill(dims, 1);
            assertThatThrownBy(() -> execution.input(0, floats(1), dims))
                    .hasMessage("255 dimensions (expected: <= 254)");
            assertThatThrownBy(() -> execution.copiedInput(0, floats(1), dims))
                    .hasMessage("255 dimensions (expected: <= 254)");
            execution.end();
        }
    }

    @Test
    void reportsAMissingInput() {
        try (TfExecution execution = execution()) {
            execution.begin();
            execution.output(0);
            assertThatThrownBy(execution::run)
                    .isInstanceOfSatisfying(
                            TfException.class, e -> assertThat(e.code()).isEqualTo(TfErrorCode.INVALID_ARGUMENT))
                    .hasMessageContaining("placeholder tensor 'x'");
            execution.end();
        }
    }

    @Test
    void namesTensorsThatTheGraphLacks() {
        assertThatThrownBy(() -> session.newExecution(List.of("z:0"), List.of("y:0")))
                .hasMessage("operation 'z': missing (expected: an operation of the graph)");
        assertThatThrownBy(() -> session.newExecution(List.of("x:0"), List.of("y:1")))
                .hasMessage("tensor 'y:1': missing (expected: an output of the graph)");
        assertThat(session.tensor("y").type()).isEqualTo(TfDataType.FLOAT);
    }

    @Test
    void aClosedSessionHasNoNewExecutions() {
        session.close();

        assertThatThrownBy(this::execution).hasMessage("session: closed (expected: open)");
    }

    @Test
    void theLibraryMayBeOpenedAgain() throws IOException, TfException {
        TfLibrary again =
                TfLibrary.open(TensorFlowJava.CACHE, TfExecutionTest.class.getClassLoader(), TensorFlowJava.CACHE);
        assertThat(again.version()).startsWith("2.");
        assertThat(again.file()).isEqualTo(TensorFlowJava.library().file());
        again.close();

        byte[] config = new SessionConfig(Executor.THREAD_POOL, 2, 2, false, true).serialized();
        assertThatThrownBy(() -> TfSession.openGraph(again, floats(1), config))
                .hasMessage("TensorFlow: closed (expected: open)");
        assertThat(session.devices("CPU")).isEqualTo(1);
        assertThat(session.devices("GPU")).isZero();
    }
}
