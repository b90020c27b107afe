package dev.nereid.examples.vision;

import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;
import javax.imageio.ImageIO;

/** Files of pictures for tests. */
final class TestImages {
    private TestImages() {}

    /** Returns a picture of four pixels: red and green above blue and white. */
    static BufferedImage fourColors(int type) {
        BufferedImage image = new BufferedImage(2, 2, type);
        image.setRGB(0, 0, 0xFFFF0000);
        image.setRGB(1, 0, 0xFF00FF00);
        image.setRGB(0, 1, 0xFF0000FF);
        image.setRGB(1, 1, 0xFFFFFFFF);
        return image;
    }

    /** Returns a picture with a red left half and a blue right half. */
    static BufferedImage halves(int width, int height) {
        BufferedImage image = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                image.setRGB(x, y, x < width / 2 ? 0xFF0000 : 0x0000FF);
            }
        }
        return image;
    }

    static byte[] file(String format, BufferedImage image) {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        try {
            if (!ImageIO.write(image, format, file)) {
                throw new IllegalArgumentException("format: " + format + " (expected: one that ImageIO can write)");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return file.toByteArray();
    }

    /** Returns the PNG file that declares a size and has no pixels: a few bytes for any amount of memory. */
    static byte[] declaredPng(int width, int height) {
        byte[] header = ByteBuffer.allocate(17)
                .put("IHDR".getBytes(StandardCharsets.ISO_8859_1))
                .putInt(width)
                .putInt(height)
                .put(new byte[] {8, 2, 0, 0, 0})
                .array();
        CRC32 sum = new CRC32();
        sum.update(header);
        ByteBuffer file = ByteBuffer.allocate(8 + 4 + header.length + 4);
        file.put(new byte[] {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'});
        return file.putInt(13).put(header).putInt((int) sum.getValue()).array();
    }

    /** Inserts a segment with an EXIF orientation behind the start of a JPEG file. */
    static byte[] oriented(byte[] jpeg, int orientation) {
        ByteBuffer file = ByteBuffer.allocate(jpeg.length + 36);
        file.put(jpeg, 0, 2).put((byte) 0xFF).put((byte) 0xE1).putShort((short) 34);
        file.put("Exif\0\0".getBytes(StandardCharsets.ISO_8859_1));
        file.put("MM".getBytes(StandardCharsets.ISO_8859_1))
                .putShort((short) 42)
                .putInt(8);
        file.putShort((short) 1).putShort((short) 0x0112).putShort((short) 3).putInt(1);
        file.putShort((short) orientation).putShort((short) 0).putInt(0);
        return file.put(jpeg, 2, jpeg.length - 2).array();
    }
}
