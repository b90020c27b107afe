package dev.nereid.distribution.testing;

import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.file.Path;
import javax.imageio.ImageIO;

/** Images in the form of networks that were trained on ImageNet. */
public final class Picture {
    private static final int SIDE = 224;
    /** The means of blue, green and red, which are subtracted. */
    private static final float[] MEAN = {104, 117, 123};

    private Picture() {}

    /** Returns the middle of a picture as FP16 [1,3,224,224]: planes of blue, green and red, less the mean of each. */
    public static byte[] halves(Path file) throws IOException {
        BufferedImage picture = middle(ImageIO.read(file.toFile()));
        short[] values = new short[MEAN.length * SIDE * SIDE];
        for (int y = 0; y < SIDE; y++) {
            for (int x = 0; x < SIDE; x++) {
                int rgb = picture.getRGB(x, y);
                for (int channel = 0; channel < MEAN.length; channel++) {
                    int value = (rgb >> (8 * channel)) & 0xff; // blue is in the lowest bits
                    values[(channel * SIDE + y) * SIDE + x] = Float.floatToFloat16(value - MEAN[channel]);
                }
            }
        }
        return TensorBytes.shorts(values);
    }

    /** Crops the largest square from the center and scales it down. */
    private static BufferedImage middle(BufferedImage picture) {
        int side = Math.min(picture.getWidth(), picture.getHeight());
        BufferedImage square = new BufferedImage(SIDE, SIDE, BufferedImage.TYPE_INT_RGB);
        Graphics2D graphics = square.createGraphics();
        graphics.setRenderingHint(RenderingHints.KEY_INTERPOLATION, RenderingHints.VALUE_INTERPOLATION_BILINEAR);
        int left = (picture.getWidth() - side) / 2;
        int top = (picture.getHeight() - side) / 2;
        graphics.drawImage(picture, 0, 0, SIDE, SIDE, left, top, left + side, top + side, null);
        graphics.dispose();
        return square;
    }
}
