package dev.nereid.examples.vision;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.awt.image.BufferedImage;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class PlanesTest {
    private static final Normalization PLAIN = new Normalization(new float[3], new float[] {1, 1, 1});

    @Test
    void writesPlaneByPlane() {
        assertThat(planes(TestImages.fourColors(BufferedImage.TYPE_INT_RGB), 2, 2, PLAIN))
                .containsExactly(1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1);
    }

    @Test
    void takesTheMeanOfAllPixelsOfALargerPicture() {
        float[] one = planes(TestImages.halves(100, 60), 1, 1, PLAIN);

        assertThat(one[0]).isCloseTo(0.5f, within(0.01f));
        assertThat(one[1]).isZero();
        assertThat(one[2]).isCloseTo(0.5f, within(0.01f));
    }

    @Test
    void interpolatesASmallerPicture() {
        float[] red = planes(TestImages.halves(2, 1), 4, 1, PLAIN);

        assertThat(red[0]).isCloseTo(1, within(1e-4f));
        assertThat(red[1]).isCloseTo(0.75f, within(1e-4f));
        assertThat(red[2]).isCloseTo(0.25f, within(1e-4f));
        assertThat(red[3]).isCloseTo(0, within(1e-4f));
    }

    @Test
    void normalizesEachColor() {
        Normalization normalization = new Normalization(new float[] {0.5f, 0, 0}, new float[] {0.5f, 0.25f, 2});
        float[] values = planes(TestImages.fourColors(BufferedImage.TYPE_INT_RGB), 2, 2, normalization);

        assertThat(values[0]).isCloseTo(1, within(1e-5f));
        assertThat(values[1]).isCloseTo(-1, within(1e-5f));
        assertThat(values[5]).isCloseTo(4, within(1e-5f));
        assertThat(values[10]).isCloseTo(0.5f, within(1e-5f));
    }

    private static float[] planes(BufferedImage image, int width, int height, Normalization normalization) {
        Planes planes = new Planes(width, height, normalization);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment to = arena.allocate(planes.byteSize());
            planes.write(PictureDecoder.decode(TestImages.file("png", image), 1 << 20), to);
            return to.toArray(ValueLayout.JAVA_FLOAT);
        }
    }
}
