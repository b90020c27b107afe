package dev.nereid.distribution.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

final class DigitLabelsTest {
    private final DigitLabels labels = new DigitLabels(List.of("zero", "one", "two"));

    @Test
    void namesTheMostProbableLabel() {
        assertThat(labels.best(floats(0.1f, 0.65f, 0.25f))).isEqualTo("one 0.6500");
    }

    @Test
    void refusesAResponseOfAnotherLength() {
        assertThatThrownBy(() -> labels.best(floats(1))).hasMessage("response: 4 bytes (expected: 12)");
    }

    private static ByteBuffer floats(float... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return bytes.flip().order(ByteOrder.BIG_ENDIAN);
    }
}
