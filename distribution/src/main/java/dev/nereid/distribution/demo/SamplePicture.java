package dev.nereid.distribution.demo;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/** A picture as input of the ensemble {@code ensemble_model}: the bytes of its file. Immutable. */
public record SamplePicture(String name, DemoRequest request) {
    public static final String MODEL = "ensemble_model";

    private static final int SHAPE = 1;
    private static final int PERCENT = 100;

    /** The classes of pixels: background, shape and outline. */
    private static final int PIXEL_CLASSES = 3;

    public static SamplePicture read(Path file) throws IOException {
        byte[] content = Files.readAllBytes(file);
        ByteBuffer element = ByteBuffer.allocate(Integer.BYTES + content.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(content.length)
                .put(content)
                .flip();
        List<DemoRequest.Output> outputs =
                List.of(new DemoRequest.Output("CLASSIFICATION", 1), new DemoRequest.Output("SEGMENTATION", 0));
        return new SamplePicture(
                file.getFileName().toString(),
                new DemoRequest(MODEL, "IMAGE", "BYTES", List.of(1L, 1L), element, outputs));
    }

    /**
     * Returns the class of the picture, its score, and the share of the pixels that belong to it.
     *
     * @param response the best class as {@code score:number:label} behind its length, and the scores of all pixels
     */
    public static String result(ByteBuffer response) throws IOException {
        ByteBuffer outputs = response.slice().order(ByteOrder.LITTLE_ENDIAN);
        byte[] text = new byte[outputs.getInt()];
        outputs.get(text);
        String[] parts = new String(text, StandardCharsets.UTF_8).split(":", 3);
        int pixels = outputs.remaining() / Float.BYTES / PIXEL_CLASSES;
        if (parts.length != 3 || pixels == 0) {
            throw new IOException("response: " + response.remaining() + " bytes (expected: a class and pixels)");
        }
        int first = outputs.position();
        int found = 0;
        for (int i = 0; i < pixels; i++) {
            found += isOfShape(outputs, first, pixels, i) ? 1 : 0;
        }
        return String.format(
                Locale.ROOT,
                "%s %.4f, on %d %% of the picture",
                parts[2],
                Float.parseFloat(parts[0]),
                Math.round((double) PERCENT * found / pixels));
    }

    private static boolean isOfShape(ByteBuffer outputs, int first, int pixels, int index) {
        float shape = outputs.getFloat(first + (SHAPE * pixels + index) * Float.BYTES);
        for (int c = 0; c < PIXEL_CLASSES; c++) {
            if (outputs.getFloat(first + (c * pixels + index) * Float.BYTES) > shape) {
                return false;
            }
        }
        return true;
    }
}
