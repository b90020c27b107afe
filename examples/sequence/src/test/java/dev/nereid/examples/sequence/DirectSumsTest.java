package dev.nereid.examples.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class DirectSumsTest {
    private static final ModelSettings MODEL = ModelSettings.builder("sequence", 1)
            .maxBatchSize(4)
            .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
            .build();

    private final List<int[]> sums = new ArrayList<>();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final SumInstance instance = new SumInstance(new DirectSums("START", "READY"), 0, () -> 0);

    private FakeRequest request(int start, int ready, int... values) {
        FakeRequest request = new FakeRequest(1, List.of("OUTPUT"))
                .with("INPUT", ints(values))
                .with("START", ints(start))
                .with("READY", ints(ready));
        return ready == 0 ? request : request.withResponse(memory);
    }

    private static Tensor ints(int... values) {
        return Tensor.of(
                DataType.INT32, Shape.of(1, values.length), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, values));
    }

    private void execute(FakeRequest... requests) {
        try (FakeBatch batch = new FakeBatch(MODEL, memory, requests)) {
            instance.execute(batch);
            for (FakeRequest request : requests) {
                request.outputs().forEach((_, tensor) -> sums.add(tensor.data().toArray(ValueLayout.JAVA_INT)));
            }
        }
    }

    @Test
    void addsUpForEachPlace() {
        execute(request(1, 1, 1, 2), request(1, 1, 10));
        execute(request(0, 0, 9, 9), request(0, 1, 5));
        execute(request(0, 1, 1, 1), request(1, 1, 7));
        assertThat(sums)
                .containsExactly(new int[] {3, 3}, new int[] {10}, new int[] {15}, new int[] {5, 5}, new int[] {7});
    }

    @Test
    void addsUpInputsOfAnyLength() {
        execute(request(1, 1, 1));
        execute(request(0, 1, 2, 3));
        execute(request(0, 1));
        execute(request(0, 1, 4));
        assertThat(sums).containsExactly(new int[] {1}, new int[] {6, 6}, new int[] {}, new int[] {10});
    }

    @Test
    void refusesTexts() {
        FakeRequest text = request(1, 1, 1).withSequence(new Sequence(new Sequence.Id.Text("a"), true, false));
        execute(text);
        assertThat(text.failure().orElseThrow())
                .hasMessage("[request id: <id_unknown>] correlation ID in request is not an unsigned int");
    }
}
