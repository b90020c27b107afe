package dev.nereid.examples.implicitstate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests what needs a state that grows, which servers have on GPUs alone. */
final class ImplicitStateInstanceTest {
    private static final int BLOCK = ImplicitStateInstance.BLOCK;
    private static final ModelSettings MODEL = ModelSettings.builder("growable_memory", 1)
            .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(1)))
            .input(TensorSpec.of("TEST_CASE", DataType.INT32, Shape.of(1)))
            .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(1)))
            .output(TensorSpec.of("OUTPUT_STATE", DataType.INT8, Shape.of(Shape.VARIABLE)))
            .build();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private static Tensor state(int... blocks) {
        MemorySegment state = Arena.ofAuto().allocate((long) blocks.length * BLOCK);
        for (int i = 0; i < blocks.length; i++) {
            state.asSlice((long) i * BLOCK, BLOCK).fill((byte) blocks[i]);
        }
        return Tensor.of(DataType.INT8, Shape.of(state.byteSize()), state);
    }

    private FakeRequest request(boolean start, Tensor present, Tensor buffer) {
        return new FakeRequest(1, List.of("OUTPUT", "OUTPUT_STATE"))
                .with("INPUT", number(1))
                .with("TEST_CASE", number(3))
                .with("INPUT_STATE", present)
                .withState("OUTPUT_STATE", memory, buffer)
                .withSequence(new Sequence(new Sequence.Id.Numeric(2), start, false))
                .withResponse(memory);
    }

    private static Tensor number(int number) {
        return Tensor.of(DataType.INT32, Shape.of(1), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, number));
    }

    @Test
    void growsByABlockWithEachRequest() {
        FakeRequest first = request(true, state(0), state(0));
        assertGrown(first, state(0));
        FakeRequest second = request(false, state(0), state(0));
        assertGrown(second, state(0, 1));
        FakeRequest third = request(false, state(0, 1), state(0, 1));
        assertGrown(third, state(0, 1, 2));
        FakeRequest again = request(true, state(0), state(0));
        assertGrown(again, state(0));
    }

    private void assertGrown(FakeRequest request, Tensor expected) {
        try (FakeBatch batch = new FakeBatch(MODEL, memory, request)) {
            new ImplicitStateInstance(false, true).execute(batch);
            Tensor output = request.outputs().get("OUTPUT_STATE");
            assertThat(output.shape()).isEqualTo(expected.shape());
            assertThat(output.data().mismatch(expected.data())).isEqualTo(-1);
            assertThat(request.writtenState("OUTPUT_STATE"))
                    .hasValueSatisfying(state ->
                            assertThat(state.data().mismatch(expected.data())).isEqualTo(-1));
        }
    }

    @Test
    void refusesAStateInAnotherBuffer() {
        FakeRequest request = request(false, state(0), state(5));
        try (FakeBatch batch = new FakeBatch(MODEL, memory, request)) {
            new ImplicitStateInstance(false, true).execute(batch);
            assertThat(request.failure()).hasValueSatisfying(error -> {
                assertThat(error.code()).isEqualTo(ErrorCode.UNSUPPORTED);
                assertThat(error).hasMessage("Input and output state are using different buffers.");
            });
        }
    }
}
