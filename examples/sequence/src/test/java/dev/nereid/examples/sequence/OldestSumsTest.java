package dev.nereid.examples.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class OldestSumsTest {
    private static final ModelSettings MODEL = ModelSettings.builder("sequence", 1)
            .maxBatchSize(4)
            .input(TensorSpec.of("INPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUTPUT", DataType.INT32, Shape.of(Shape.VARIABLE)))
            .build();

    private final List<int[]> sums = new ArrayList<>();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final SumInstance instance = new SumInstance(new OldestSums("START", "END", "CORRID"), 0, () -> 0);

    private FakeRequest request(int start, int end, long id, int... values) {
        MemorySegment number = Arena.ofAuto().allocateFrom(ValueLayout.JAVA_LONG, id);
        return request(start, end, Tensor.of(DataType.UINT64, Shape.of(1, 1), number), values);
    }

    private FakeRequest request(int start, int end, String id, int... values) {
        return request(start, end, Tensor.ofStrings(Shape.of(1, 1), List.of(id)), values);
    }

    private FakeRequest request(int start, int end, Tensor id, int... values) {
        return new FakeRequest(1, List.of("OUTPUT"))
                .with("INPUT", ints(values))
                .with("START", ints(start))
                .with("END", ints(end))
                .with("CORRID", id)
                .withResponse(memory);
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
    void addsUpForEachSequenceAndTheIdAtItsEnd() {
        execute(request(1, 0, 7, 1, 2), request(1, 0, 8, 10));
        execute(request(0, 0, 8, 5));
        execute(request(0, 1, 8, 1), request(0, 1, 7, 1, 1));
        assertThat(sums)
                .containsExactly(new int[] {3, 3}, new int[] {10}, new int[] {15}, new int[] {24}, new int[] {12, 12});
    }

    @Test
    void addsTheNumberInATextAtItsEnd() {
        execute(request(1, 0, "7", 1), request(1, 0, " 7 of 9", 10), request(1, 0, "-3", 100));
        execute(request(0, 1, " 7 of 9", 1), request(0, 1, "-3", 1), request(0, 1, "7", 1));
        assertThat(sums)
                .containsExactly(
                        new int[] {1}, new int[] {10}, new int[] {100}, new int[] {18}, new int[] {98}, new int[] {9});
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a", "-", "seven 7", "2147483648", "99999999999999999999", "\u0000"})
    void refusesTextsWithoutANumber(String id) {
        FakeRequest refused = request(1, 0, id, 1);
        execute(refused, request(1, 1, "1", 1));
        assertThat(refused.failure()).hasValueSatisfying(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error)
                    .hasMessageStartingWith(
                            "dyna sequence backend expects correlation ID to be decodable into an integer");
        });
        assertThat(sums).containsExactly(new int[] {2});
    }

    @Test
    void forgetsSequencesThatEndWithoutALastRequest() {
        execute(request(1, 0, 7, 1));
        instance.sequenceEnded(new Sequence.Id.Numeric(7), SequenceEnd.IDLE);
        execute(request(0, 0, 7, 2));
        assertThat(sums).containsExactly(new int[] {1}, new int[] {2});
    }
}
