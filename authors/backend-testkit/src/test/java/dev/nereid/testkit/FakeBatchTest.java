package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Violations that a batch reports. */
class FakeBatchTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(3)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(3)))
            .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    @Test
    void failsOnAnOutputThatDoesNotFitTheConfiguration() {
        FakeBatch batch = batch("OUT");

        assertThatThrownBy(() -> batch.allocate("OUT", DataType.FP32, Shape.of(7)))
                .isInstanceOf(AssertionError.class)
                .hasMessage("output 'OUT': shape [7] (expected: [3])");
        batch.close();
    }

    @Test
    void failsOnAMissingOutput() {
        FakeBatch batch = batch("OUT", "MORE");
        batch.allocate("OUT", DataType.FP32, Shape.of(3));

        assertThatThrownBy(batch::close)
                .isInstanceOf(AssertionError.class)
                .hasMessage("outputs: [MORE] missing (expected: all requested outputs)");
        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void acceptsWhatFitsAndMissesNothingOfARequestThatFailed() {
        try (FakeBatch batch = batch("OUT", "MORE")) {
            batch.allocate("OUT", DataType.FP32, Shape.of(3));
            batch.allocate("MORE", DataType.FP32, Shape.of(9));
        }
        FakeRequest failed = new FakeRequest(1, List.of("OUT", "MORE"));
        try (FakeBatch batch = new FakeBatch(model, memory, failed)) {
            batch.allocate("OUT", DataType.FP32, Shape.of(3));
            failed.fail(new BackendException(ErrorCode.INTERNAL, "broken"));
        }
    }

    private FakeBatch batch(String... outputs) {
        return new FakeBatch(model, memory, new FakeRequest(1, List.of(outputs)));
    }
}
