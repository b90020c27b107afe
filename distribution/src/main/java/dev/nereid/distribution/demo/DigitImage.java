package dev.nereid.distribution.demo;

import java.awt.image.Raster;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import javax.imageio.ImageIO;

/**
 * Image of a handwritten digit, as input of the model {@code digits}. Immutable as long as the pixels are not written.
 *
 * @param pixels FP32, little-endian, row by row, from 0 (paper) to 1 (ink)
 */
public record DigitImage(String name, int width, int height, ByteBuffer pixels) {
    private static final float WHITE = 255;

    public static DigitImage read(Path file) throws IOException {
        Raster raster = ImageIO.read(file.toFile()).getRaster();
        ByteBuffer pixels = ByteBuffer.allocate(raster.getWidth() * raster.getHeight() * Float.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN);
        for (int y = 0; y < raster.getHeight(); y++) {
            for (int x = 0; x < raster.getWidth(); x++) {
                pixels.putFloat(raster.getSample(x, y, 0) / WHITE);
            }
        }
        return new DigitImage(file.getFileName().toString(), raster.getWidth(), raster.getHeight(), pixels.flip());
    }

    public DemoRequest request() {
        List<DemoRequest.Output> outputs = List.of(new DemoRequest.Output("probabilities", 0));
        List<Long> shape = List.of(1L, 1L, (long) height, (long) width);
        return new DemoRequest("digits", "image", "FP32", shape, pixels(), outputs);
    }

    /** Returns a new view of the pixels, from the start. */
    @Override
    public ByteBuffer pixels() {
        return pixels.asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }
}
