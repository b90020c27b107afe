package dev.nereid.examples.vision;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PictureDecoderTest {
    private static final byte[] SCAN = {(byte) 0xFF, (byte) 0xDA, 0, 2};
    private static final long MAX_PIXELS = 1 << 20;
    private static final Path IMAGES = Path.of("..", "images");

    @ParameterizedTest
    @ValueSource(
            ints = {
                BufferedImage.TYPE_INT_RGB,
                BufferedImage.TYPE_INT_ARGB,
                BufferedImage.TYPE_3BYTE_BGR,
                BufferedImage.TYPE_4BYTE_ABGR,
                BufferedImage.TYPE_BYTE_INDEXED
            })
    void decodesPngFilesOfAllKinds(int type) {
        Picture picture = decode(TestImages.file("png", TestImages.fourColors(type)));

        assertThat(new int[] {picture.width(), picture.height()}).containsExactly(2, 2);
        assertThat(bytes(picture)).containsExactly(255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255);
    }

    @ParameterizedTest
    @CsvSource({"10, 1", "11, 257"}) // TYPE_BYTE_GRAY, TYPE_USHORT_GRAY
    void takesGrayValuesAsTheyAre(int type, int factor) {
        BufferedImage image = new BufferedImage(3, 1, type);
        image.getRaster().setPixels(0, 0, 3, 1, new int[] {0, 100 * factor, 255 * factor});

        assertThat(bytes(decode(TestImages.file("png", image)))).containsExactly(0, 0, 0, 100, 100, 100, 255, 255, 255);
    }

    @Test
    void putsTransparentPixelsOnWhite() {
        BufferedImage image = new BufferedImage(3, 1, BufferedImage.TYPE_INT_ARGB);
        image.setRGB(0, 0, 0x00FF0000);
        image.setRGB(1, 0, 0x80FF0000);
        image.setRGB(2, 0, 0xFFFF0000);

        assertThat(bytes(decode(TestImages.file("png", image))))
                .containsExactly(255, 255, 255, 255, 127, 127, 255, 0, 0);
    }

    @Test
    void decodesJpegFilesInColorAndGray() {
        Picture colors = decode(TestImages.file("jpeg", TestImages.halves(32, 16)));
        assertThat(colors.channel(4, 4, 0)).isGreaterThan(240);
        assertThat(colors.channel(28, 4, 2)).isGreaterThan(240);

        BufferedImage gray = new BufferedImage(16, 16, BufferedImage.TYPE_BYTE_GRAY);
        gray.getRaster().setPixels(0, 0, 16, 16, filled(256, 100));
        assertThat(decode(TestImages.file("jpeg", gray)).channel(8, 8, 1)).isBetween(98, 102);
    }

    @ParameterizedTest
    @CsvSource({"1, 0 0", "2, 31 0", "3, 31 15", "4, 0 15", "5, 0 0", "6, 15 0", "7, 15 31", "8, 0 31"})
    void turnsPicturesAsTheirCameraWasHeld(int orientation, String corner) {
        // The upper left quarter is red, everything else blue: it is found in another corner of the turned picture.
        BufferedImage image = TestImages.halves(32, 16);
        for (int x = 0; x < 16; x++) {
            for (int y = 8; y < 16; y++) {
                image.setRGB(x, y, 0x0000FF);
            }
        }
        Picture picture = decode(TestImages.oriented(TestImages.file("jpeg", image), orientation));

        assertThat(picture.width()).isEqualTo(orientation > 4 ? 16 : 32);
        String[] at = corner.split(" ", -1);
        for (int x : new int[] {0, picture.width() - 1}) {
            for (int y : new int[] {0, picture.height() - 1}) {
                boolean isRed = picture.channel(x, y, 0) > 128;
                assertThat(isRed)
                        .as("%d %d", x, y)
                        .isEqualTo(x == Integer.parseInt(at[0]) && y == Integer.parseInt(at[1]));
            }
        }
    }

    @Test
    void refusesWhatIsNeitherPngNorJpeg() {
        assertRefused(new byte[0], "image: empty (expected: a PNG or JPEG file)");
        assertRefused(new byte[] {(byte) 0x89}, "image: begins with 89 (expected: a PNG or JPEG file)");
        assertRefused(
                TestImages.file("gif", TestImages.fourColors(BufferedImage.TYPE_INT_RGB)),
                "image: begins with 47 49 46 38 (expected: a PNG or JPEG file)");
    }

    @Test
    void checksTheDeclaredSizeBeforeItAllocates() {
        assertRefused(
                TestImages.declaredPng(Integer.MAX_VALUE, Integer.MAX_VALUE),
                "image: 2147483647 x 2147483647 pixels (expected: at most 1048576 in all)");
        assertRefused(
                TestImages.file("jpeg", new BufferedImage(2048, 1024, BufferedImage.TYPE_BYTE_GRAY)),
                "image: 2048 x 1024 pixels (expected: at most 1048576 in all)");
        assertRefused(TestImages.declaredPng(0, 5), "image: broken PNG file: ");
        assertRefused(TestImages.declaredPng(1024, 1024), "image: broken PNG file: ");
    }

    @Test
    void refusesTheColorsOfPrinters() throws IOException {
        byte[] file = Files.readAllBytes(IMAGES.resolve("heart.jpg"));
        int frame = indexOfFrame(file);
        file[frame + 9] = 4;

        assertRefused(file, "image: JPEG file in the colors of printers, CMYK (expected: gray or RGB)");
    }

    @Test
    void refusesFilesOfManyScans() throws IOException {
        byte[] many = withScans(100);

        assertThatThrownBy(() -> decode(many)).hasMessageContaining(" scans (expected: at most 64)");
    }

    /** Each scan costs as much as a picture. */
    @Test
    void refusesManyPixelsInAllScans() throws IOException {
        byte[] some = withScans(20);
        BufferedImage image = ImageIO.read(IMAGES.resolve("heart.jpg").toFile());
        long pixels = (long) image.getWidth() * image.getHeight();

        assertThatThrownBy(() -> PictureDecoder.decode(some, pixels))
                .hasMessageContaining(" scans of " + image.getWidth() + " x " + image.getHeight()
                        + " pixels (expected: at" + " most " + 10 * pixels + " pixels in all scans)");
    }

    /** Pictures that cameras append are other files. */
    @Tag("slow")
    @Test
    void ignoresWhatFollowsTheEndOfThePicture() throws Exception {
        byte[] file = Files.readAllBytes(IMAGES.resolve("heart.jpg"));
        byte[] more = Arrays.copyOf(file, file.length + 400);
        for (int i = 0; i < 100; i++) {
            System.arraycopy(SCAN, 0, more, file.length + i * SCAN.length, SCAN.length);
        }

        assertThat(decode(more)).usingRecursiveComparison().isEqualTo(decode(file));
    }

    /** Returns a picture with empty scans before its end. */
    private static byte[] withScans(int count) throws IOException {
        byte[] file = Files.readAllBytes(IMAGES.resolve("heart.jpg"));
        int end = file.length - 2;
        byte[] many = Arrays.copyOf(file, end + count * SCAN.length + 2);
        for (int i = 0; i < count; i++) {
            System.arraycopy(SCAN, 0, many, end + i * SCAN.length, SCAN.length);
        }
        System.arraycopy(file, end, many, many.length - 2, 2);
        return many;
    }

    /** Whatever is broken fails with an error of the client; what the reader does not notice is a picture. */
    @ParameterizedTest
    @ValueSource(strings = {"star.png", "heart.jpg", "faces.jpg"})
    void survivesFilesThatAreCutOffOrChanged(String name) throws IOException {
        byte[] file = Files.readAllBytes(IMAGES.resolve(name));
        Random random = new Random(22);
        int refused = 0;
        for (int round = 0; round < 60; round++) {
            byte[] broken = Arrays.copyOf(file, round % 2 == 0 ? 1 + random.nextInt(file.length - 1) : file.length);
            for (int i = 0; i < round; i++) {
                broken[random.nextInt(broken.length)] = (byte) random.nextInt(256);
            }
            try {
                Picture picture = PictureDecoder.decode(broken, MAX_PIXELS);
                assertThat((long) picture.width() * picture.height()).isBetween(1L, MAX_PIXELS);
            } catch (BackendException e) {
                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(e.getMessage()).startsWith("image: ");
                refused++;
            }
        }
        assertThat(refused).isGreaterThan(20);
    }

    @ParameterizedTest
    @ValueSource(strings = {"star.png", "heart.jpg"})
    void refusesAFileThatIsCutOff(String name) throws IOException {
        byte[] file = Files.readAllBytes(IMAGES.resolve(name));

        assertRefused(Arrays.copyOf(file, file.length / 2), "image: broken ");
    }

    @Test
    void leavesTheContextClassLoaderAlone() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        decode(TestImages.file("png", TestImages.halves(4, 4)));

        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    private static Picture decode(byte[] file) {
        return PictureDecoder.decode(file, MAX_PIXELS);
    }

    private static void assertRefused(byte[] file, String message) {
        assertThatThrownBy(() -> decode(file))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageStartingWith(message);
    }

    private static int indexOfFrame(byte[] file) {
        for (int i = 2; i + 1 < file.length; i++) {
            int marker = Byte.toUnsignedInt(file[i + 1]);
            if (file[i] == (byte) 0xFF && (marker == 0xC0 || marker == 0xC2)) {
                return i;
            }
        }
        throw new AssertionError("no frame");
    }

    private static int[] filled(int length, int value) {
        int[] values = new int[length];
        Arrays.fill(values, value);
        return values;
    }

    private static int[] bytes(Picture picture) {
        int[] values = new int[picture.rgb().length];
        for (int i = 0; i < values.length; i++) {
            values[i] = Byte.toUnsignedInt(picture.rgb()[i]);
        }
        return values;
    }
}
