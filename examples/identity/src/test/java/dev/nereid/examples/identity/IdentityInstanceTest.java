package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class IdentityInstanceTest {
    private static final Map<String, String> OUTPUTS = Map.of("INPUT0", "OUTPUT0", "INPUT1", "OUTPUT1");

    @Test
    void handsInputsOnWhereTheyLie() {
        Tensor numbers = Tensor.of(DataType.FP32, Shape.of(1, 2), MemorySegment.ofArray(new float[] {1, 2}));
        Tensor text = Tensor.of(DataType.BYTES, Shape.of(1, 1), MemorySegment.ofArray(new byte[] {1, 0, 0, 0, 'a'}));
        RecordedRequest request = new RecordedRequest(Map.of("INPUT0", numbers, "INPUT1", text));

        instance(0, 0).execute(new OneRequestBatch(request));

        assertThat(request.completed.get("OUTPUT0")).isSameAs(numbers);
        assertThat(request.completed.get("OUTPUT1")).isSameAs(text);
        assertThat(request.failures).isEmpty();
    }

    @Test
    void leavesTheOutputOfAnAbsentInputOutThatIsNotOptional() {
        Tensor numbers = Tensor.of(DataType.INT8, Shape.of(0), MemorySegment.ofArray(new byte[0]));
        RecordedRequest request = new RecordedRequest(Map.of("INPUT1", numbers));

        instance(0, 0).execute(new OneRequestBatch(request));

        assertThat(request.completed).containsOnlyKeys("OUTPUT1");
    }

    @Test
    void waitsUntilTheDelayHasPassedByItsClock() {
        ArrayDeque<Long> times = new ArrayDeque<>(List.of(100L, 900L, 1_100L));
        RecordedRequest request = new RecordedRequest(Map.of());
        IdentityInstance instance = new IdentityInstance(
                new IdentityModel(OUTPUTS, Map.of(), true, new IdentityDelays(1_000, 0, 0)), 0, times::remove);

        instance.execute(new OneRequestBatch(request));

        assertThat(times).isEmpty();
    }

    @Test
    void endsTheWaitWhenItsThreadIsInterrupted() {
        RecordedRequest request = new RecordedRequest(Map.of());
        IdentityInstance instance = instance(Long.MAX_VALUE / 2, 0);

        Thread.currentThread().interrupt();

        assertThatThrownBy(() -> instance.execute(new OneRequestBatch(request)))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(request.completed).isEmpty();
    }

    private static IdentityInstance instance(long delayNanos, long now) {
        return new IdentityInstance(
                new IdentityModel(OUTPUTS, Map.of(), true, new IdentityDelays(delayNanos, 0, 0)), 0, () -> now);
    }
}
