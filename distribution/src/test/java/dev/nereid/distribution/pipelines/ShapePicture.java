package dev.nereid.distribution.pipelines;

import dev.nereid.distribution.testing.TestPaths;
import java.awt.image.Raster;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import javax.imageio.ImageIO;

/**
 * A picture that the training of the shapes held back. Immutable, except the arrays, which are never changed.
 *
 * @param name the name of its file
 * @param label its shape
 * @param file the bytes of its file
 * @param classes what each pixel belongs to, row by row: 0 background, 1 shape, 2 outline
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record ShapePicture(String name, String label, byte[] file, int[] classes) {
    static final int CLASSES = 3;

    /** Returns all pictures: PNG and JPEG files. */
    static List<ShapePicture> all() throws IOException {
        Path directory = TestPaths.checkout().resolve("examples/training/shapes");
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.getFileName().toString().contains("_"))
                    .sorted()
                    .map(ShapePicture::read)
                    .toList();
        }
    }

    private static ShapePicture read(Path file) {
        String name = file.getFileName().toString();
        String[] parts = name.split("[_.]", -1);
        try {
            Raster raster = ImageIO.read(
                            file.resolveSibling(parts[0] + ".classes.png").toFile())
                    .getRaster();
            int[] classes = raster.getSamples(0, 0, raster.getWidth(), raster.getHeight(), 0, (int[]) null);
            return new ShapePicture(name, parts[1], Files.readAllBytes(file), classes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the share of the pixels whose likeliest class is right. */
    double rightPixels(float[] probabilities) {
        int right = 0;
        for (int i = 0; i < classes.length; i++) {
            int best = 0;
            for (int c = 1; c < CLASSES; c++) {
                if (probabilities[c * classes.length + i] > probabilities[best * classes.length + i]) {
                    best = c;
                }
            }
            right += best == classes[i] ? 1 : 0;
        }
        return (double) right / classes.length;
    }
}
