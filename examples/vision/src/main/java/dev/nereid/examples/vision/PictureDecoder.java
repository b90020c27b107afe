package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.awt.image.BufferedImage;
import java.awt.image.IndexColorModel;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import javax.imageio.ImageIO;
import javax.imageio.ImageReader;
import javax.imageio.stream.ImageInputStream;
import javax.imageio.stream.MemoryCacheImageInputStream;

/**
 * Decodes PNG and JPEG files. Stateless.
 *
 * <p>A file is data of a stranger: whatever is wrong with it fails the request that sent it. The size that it declares is
 * checked before any memory is allocated for its pixels.
 */
final class PictureDecoder {
    /** More passes over one picture than any camera or program writes; each costs as much as a whole picture. */
    private static final int MAX_SCANS = 64;

    /** The number of passes that programs write: the largest picture may have as many. */
    private static final long USUAL_SCANS = 10;

    private static final int WHITE = 255;
    private static final int CMYK = 4;
    private static final byte[] PNG = {(byte) 0x89, 'P', 'N', 'G'};
    private static final byte[] JPEG = {(byte) 0xFF, (byte) 0xD8, (byte) 0xFF};
    private static final String EXPECTED_FORMAT = " (expected: a PNG or JPEG file)";

    private PictureDecoder() {}

    /**
     * Decodes a file. Gray becomes color, transparent pixels get a white background, and a picture is turned as its camera
     * was held.
     *
     * @param maxPixels the largest picture
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the file is not such a picture
     */
    static Picture decode(byte[] file, long maxPixels) {
        if (startsWith(file, PNG)) {
            return decode("png", file, maxPixels, 1);
        }
        if (!startsWith(file, JPEG)) {
            throw invalid(
                    file.length == 0
                            ? "empty" + EXPECTED_FORMAT
                            : "begins with "
                                    + HexFormat.ofDelimiter(" ").formatHex(file, 0, Math.min(4, file.length))
                                    + EXPECTED_FORMAT);
        }
        JpegHeader header = JpegHeader.read(file);
        if (header.components() == CMYK) {
            throw invalid("JPEG file in the colors of printers, CMYK (expected: gray or RGB)");
        }
        if (header.scans() > MAX_SCANS) {
            throw invalid("JPEG file of " + header.scans() + " scans (expected: at most " + MAX_SCANS + ")");
        }
        return decode("jpeg", file, maxPixels, header.scans()).upright(header.orientation());
    }

    private static boolean startsWith(byte[] file, byte[] start) {
        if (file.length < start.length) {
            return false;
        }
        for (int i = 0; i < start.length; i++) {
            if (file[i] != start[i]) {
                return false;
            }
        }
        return true;
    }

    private static Picture decode(String format, byte[] file, long maxPixels, int scans) {
        ImageReader reader = reader(format);
        List<String> warnings = new ArrayList<>();
        try (ImageInputStream stream = new MemoryCacheImageInputStream(new ByteArrayInputStream(file))) {
            reader.setInput(stream, true, true); // without metadata, which may be compressed, of any size
            reader.addIIOReadWarningListener((source, warning) -> warnings.add(warning));
            long width = reader.getWidth(0);
            long height = reader.getHeight(0);
            if (width * height > maxPixels) {
                throw invalid(width + " x " + height + " pixels (expected: at most " + maxPixels + " in all)");
            }
            if (scans * width * height > USUAL_SCANS * maxPixels) {
                throw invalid(scans + " scans of " + width + " x " + height + " pixels (expected: at most "
                        + USUAL_SCANS * maxPixels + " pixels in all scans)");
            }
            Picture picture = picture(reader.read(0));
            if (!warnings.isEmpty()) {
                throw invalid(broken(format, warnings.getFirst()));
            }
            return picture;
        } catch (BackendException e) {
            throw e;
        } catch (IOException | RuntimeException e) { // the readers of the JDK throw both for broken files
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT, "image: " + broken(format, String.valueOf(e.getMessage())), e);
        } finally {
            reader.dispose();
        }
    }

    /** Returns a new reader. The registry keeps the context class loader of its first user: not that of a plugin. */
    private static ImageReader reader(String format) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
        try {
            return ImageIO.getImageReadersByFormatName(format).next();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** Copies the pixels as they are in the file: profiles of colors are ignored, as other libraries do. */
    private static Picture picture(BufferedImage image) {
        int width = image.getWidth();
        int height = image.getHeight();
        boolean hasPalette = image.getColorModel() instanceof IndexColorModel;
        int bands = hasPalette ? 4 : image.getRaster().getNumBands();
        int shift =
                hasPalette ? 0 : Math.max(0, image.getRaster().getSampleModel().getSampleSize(0) - 8);
        byte[] rgb = new byte[Picture.CHANNELS * width * height];
        int[] samples = new int[bands * width];
        int[] colors = new int[hasPalette ? width : 0];
        for (int y = 0; y < height; y++) {
            if (hasPalette) {
                split(image.getRGB(0, y, width, 1, colors, 0, width), samples);
            } else {
                image.getRaster().getPixels(0, y, width, 1, samples);
            }
            row(samples, bands, shift, rgb, Picture.CHANNELS * width * y);
        }
        return new Picture(width, height, rgb);
    }

    /** Splits colors of a palette into red, green, blue and alpha. */
    private static void split(int[] colors, int[] samples) {
        for (int x = 0; x < colors.length; x++) {
            samples[4 * x] = colors[x] >> 16 & 0xFF;
            samples[4 * x + 1] = colors[x] >> 8 & 0xFF;
            samples[4 * x + 2] = colors[x] & 0xFF;
            samples[4 * x + 3] = colors[x] >>> 24;
        }
    }

    private static void row(int[] samples, int bands, int shift, byte[] rgb, int at) {
        boolean hasAlpha = bands % 2 == 0;
        boolean isGray = bands <= 2;
        for (int source = 0, target = at; source < samples.length; source += bands, target += Picture.CHANNELS) {
            int alpha = hasAlpha ? samples[source + bands - 1] >> shift : WHITE;
            for (int c = 0; c < Picture.CHANNELS; c++) {
                int value = samples[source + (isGray ? 0 : c)] >> shift;
                rgb[target + c] = (byte) ((value * alpha + WHITE * (WHITE - alpha) + WHITE / 2) / WHITE);
            }
        }
    }

    private static String broken(String format, String reason) {
        return "broken " + format.toUpperCase(Locale.ROOT) + " file: " + reason;
    }

    private static BackendException invalid(String text) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, "image: " + text);
    }
}
