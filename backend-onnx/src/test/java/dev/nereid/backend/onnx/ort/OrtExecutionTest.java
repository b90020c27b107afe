package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class OrtExecutionTest {
    private final TestTensors tensors = new TestTensors();
    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        library.close();
        tensors.close();
    }

    @Test
    void reportsShapesThatDependOnValues() throws OrtException {
        try (OrtSession session = session("non_zero");
                OrtExecution execution = session.newExecution(Map.of())) {
            assertThat(nonZero(execution, 0, 3, 0, 4)).containsExactly(1, 3);
            assertThat(nonZero(execution, 0, 0, 0, 4)).containsExactly(3);
            assertThat(nonZero(execution, 0, 0, 0, 0)).isEmpty();
        }
    }

    private long[] nonZero(OrtExecution execution, float... values) throws OrtException {
        execution.begin();
        execution.input(0, tensors.floats(values), values.length);
        execution.output(0);
        execution.run();
        try (OrtValue output = execution.takeOutput(0)) {
            assertThat(output.shape()).hasSize(2).startsWith(1);
            return output.data().toArray(ValueLayout.JAVA_LONG);
        } finally {
            execution.end();
        }
    }

    @Test
    void sharesTheMemoryOfTheCallerWithoutACopy() throws OrtException {
        MemorySegment a = tensors.floats(1, 2, 3, 4);
        MemorySegment sum = tensors.empty(16);
        try (OrtSession session = session("add_sub");
                OrtExecution execution = session.newExecution(Map.of())) {
            for (int run = 0; run < 3; run++) {
                a.set(ValueLayout.JAVA_FLOAT, 0, run);
                execution.begin();
                execution.input(0, a, 4);
                execution.input(1, a, 4);
                execution.output(0, sum, 4);
                execution.run();
                execution.end();

                assertThat(TestTensors.floats(sum)).containsExactly(2 * run, 4, 6, 8);
            }
        }
    }

    @Test
    void followsMemoryAndShapeFromRunToRun() throws OrtException {
        try (OrtSession session = session("identity_float");
                OrtExecution execution = session.newExecution(Map.of())) {
            MemorySegment data = tensors.floats(1, 2, 3, 4);

            assertThat(identity(execution, data, 2, 2)).containsExactly(1, 2, 3, 4);
            assertThat(identity(execution, data, 1, 4)).containsExactly(1, 2, 3, 4);
            assertThat(identity(execution, tensors.floats(5, 6), 1, 2)).containsExactly(5, 6);
            assertThat(identity(execution, MemorySegment.NULL, 0, 2)).isEmpty();
            assertThat(identity(execution, data, 2, 2)).containsExactly(1, 2, 3, 4);
        }
    }

    @Test
    void readsDataThatIsNotAligned() throws OrtException {
        MemorySegment shifted = tensors.empty(17).asSlice(1);
        for (int i = 0; i < 4; i++) {
            shifted.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, i);
        }
        try (OrtSession session = session("identity_float");
                OrtExecution execution = session.newExecution(Map.of())) {
            assertThat(identity(execution, shifted, 1, 4)).containsExactly(0, 1, 2, 3);
            shifted.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, 9);
            assertThat(identity(execution, shifted, 1, 4)).containsExactly(9, 1, 2, 3);
        }
    }

    private static float[] identity(OrtExecution execution, MemorySegment data, long... shape) throws OrtException {
        execution.begin();
        try {
            execution.input(0, data, shape);
            execution.output(0);
            execution.run();
            try (OrtValue output = execution.takeOutput(0)) {
                assertThat(output.shape()).isEqualTo(shape);
                return TestTensors.floats(output.data());
            }
        } finally {
            execution.end();
        }
    }

    @Test
    void givesConstantsAndCopiesInTheMemoryOfTheCaller() throws OrtException {
        MemorySegment copy = tensors.empty(8);
        MemorySegment constant = tensors.empty(16);
        try (OrtSession session = session("constant");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, tensors.floats(8, 9), 2);
            execution.output(1, constant, 4);
            execution.output(0, copy, 2);
            execution.run();
            execution.end();
        }

        assertThat(TestTensors.floats(copy)).containsExactly(8, 9);
        assertThat(TestTensors.floats(constant)).containsExactly(0, 1, 2, 3);
    }

    @Test
    void fetchesOnlyRequestedOutputsInAnyOrder() throws OrtException {
        MemorySegment sum = tensors.empty(16);
        try (OrtSession session = session("add_sub");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(1, tensors.floats(1, 1, 1, 1), 4);
            execution.input(0, tensors.floats(1, 2, 3, 4), 4);
            execution.output(1);
            execution.output(0, sum, 4);
            execution.run();

            try (OrtValue difference = execution.takeOutput(1)) {
                assertThat(TestTensors.floats(difference.data())).containsExactly(0, 1, 2, 3);
            }
            assertThat(TestTensors.floats(sum)).containsExactly(2, 3, 4, 5);
            assertThatThrownBy(() -> execution.takeOutput(0)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> execution.takeOutput(1)).isInstanceOf(IllegalStateException.class);
            execution.end();
        }
    }

    @Test
    void forgetsTheInputsAndOutputsOfTheRunBefore() throws OrtException {
        try (OrtSession session = session("add_sub");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, tensors.floats(1, 2, 3, 4), 4);
            execution.input(1, tensors.floats(1, 2, 3, 4), 4);
            execution.output(0);
            execution.run();
            execution.end();

            execution.begin();
            execution.input(0, tensors.floats(1, 2, 3, 4), 4);
            execution.output(0);

            assertThatThrownBy(execution::run)
                    .isInstanceOf(OrtException.class)
                    .hasMessage("'b': no data (expected: data for every input)");
            assertThatThrownBy(() -> execution.takeOutput(0)).isInstanceOf(IllegalStateException.class);
            execution.end();
        }
    }

    @Test
    void passesOnWhyARunFailedAndRunsAgain() throws OrtException {
        try (OrtSession session = session("gather");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, tensors.longs(17), 1);
            execution.output(0);
            assertThatExceptionOfType(OrtException.class)
                    .isThrownBy(execution::run)
                    .withMessageContaining("indices element out of data bounds, idx=17")
                    .extracting(OrtException::code)
                    .isEqualTo(OrtErrorCode.INVALID_ARGUMENT);
            execution.end();

            execution.begin();
            execution.input(0, tensors.longs(3), 1);
            execution.output(0);
            execution.run();
            try (OrtValue output = execution.takeOutput(0)) {
                assertThat(TestTensors.floats(output.data())).containsExactly(3);
            }
            execution.end();
        }
    }

    @Test
    void passesOnThatAShapeIsNotTheModels() throws OrtException {
        try (OrtSession session = session("add_sub");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, tensors.floats(1, 2), 2);
            execution.input(1, tensors.floats(1, 2), 2);
            execution.output(0);

            assertThatExceptionOfType(OrtException.class)
                    .isThrownBy(execution::run)
                    .withMessageContaining("Got invalid dimensions for input: a");
            execution.end();
        }
    }

    @Test
    void failsWhenAnOutputDoesNotHaveTheShapeOfItsMemory() throws OrtException {
        try (OrtSession session = session("identity_float");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, tensors.floats(1, 2, 3, 4), 2, 2);
            execution.output(0, tensors.empty(24), 2, 3);

            assertThatExceptionOfType(OrtException.class).isThrownBy(execution::run);
            execution.end();
        }
    }

    @Test
    void refusesMemoryThatDoesNotFit() throws OrtException {
        MemorySegment data = tensors.floats(1, 2, 3, 4);
        MemorySegment heap = MemorySegment.ofArray(new float[] {1, 2});
        try (OrtSession session = session("identity_float");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            assertThatThrownBy(() -> execution.input(0, data, 1, 3))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("'input': 16 bytes (expected: 12 for FLOAT [1, 3])");
            assertThatThrownBy(() -> execution.input(0, data, -1, 4)).isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> execution.input(0, data, Long.MAX_VALUE, 2))
                    .isInstanceOf(ArithmeticException.class);
            assertThatThrownBy(() -> execution.input(0, heap, 1, 2))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("'input': memory on the heap (expected: native memory)");
            assertThatThrownBy(() -> execution.output(0, data.asSlice(1, 12), 1, 3))
                    .isInstanceOf(IllegalArgumentException.class);
            assertThatThrownBy(() -> execution.output(0, data.asReadOnly(), 1, 4))
                    .isInstanceOf(IllegalArgumentException.class);
            execution.end();
        }
    }

    @Test
    void refusesToBeUsedOutsideARun() throws OrtException {
        try (OrtSession session = session("identity_float");
                OrtExecution execution = session.newExecution(Map.of())) {
            assertThatThrownBy(() -> execution.input(0, tensors.floats(1), 1, 1))
                    .isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(execution::run).isInstanceOf(IllegalStateException.class);
            execution.begin();
            assertThatThrownBy(execution::begin)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("execution: running (expected: idle)");
            execution.end();
            execution.end();
        }
    }

    @Test
    void shrinksTheArenaWhenTheRunIsConfiguredTo() throws OrtException {
        try (OrtSession session = session("add_sub");
                OrtExecution execution = session.newExecution(Map.of("memory.enable_memory_arena_shrinkage", "cpu:0"));
                OrtExecution wrong =
                        session.newExecution(Map.of("memory.enable_memory_arena_shrinkage", "nowhere:0"))) {
            addInto(execution);

            assertThatExceptionOfType(OrtException.class).isThrownBy(() -> addInto(wrong));
        }
    }

    private void addInto(OrtExecution execution) throws OrtException {
        execution.begin();
        try {
            execution.input(0, tensors.floats(1, 2, 3, 4), 4);
            execution.input(1, tensors.floats(1, 2, 3, 4), 4);
            execution.output(0);
            execution.run();
        } finally {
            execution.end();
        }
    }

    private OrtSession session(String model) throws OrtException {
        return OrtSession.open(library, TestModels.model(model + ".onnx"), OrtSessionOptions.DEFAULTS);
    }
}
