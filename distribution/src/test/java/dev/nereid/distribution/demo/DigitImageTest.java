package dev.nereid.distribution.demo;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

final class DigitImageTest {
    @Test
    void readsGrayPixelsFromPaperToInk() throws IOException {
        DigitImage image = DigitImage.read(Path.of("../examples/images/digit_7_0.png"));

        assertThat(image.name()).isEqualTo("digit_7_0.png");
        assertThat(image.width()).isEqualTo(8);
        assertThat(image.height()).isEqualTo(8);
        assertThat(image.pixels().remaining()).isEqualTo(64 * Float.BYTES);
        // The first row as examples/README.md prints it.
        float[] row = new float[8];
        image.pixels().asFloatBuffer().get(row);
        assertThat(row).containsExactly(new float[] {0, 0, 0.1875f, 0.8125f, 1, 1, 0.8125f, 0}, within(0.002f));
    }

    private static org.assertj.core.data.Offset<Float> within(float value) {
        return org.assertj.core.data.Offset.offset(value);
    }
}
