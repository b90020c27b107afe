package dev.nereid.examples.vision;

/**
 * A decoded picture. Immutable: no code writes the array.
 *
 * @param width the width in pixels
 * @param height the height in pixels
 * @param rgb red, green and blue of each pixel, row by row
 */
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record Picture(int width, int height, byte[] rgb) {
    static final int CHANNELS = 3;

    Picture {
        if (rgb.length != CHANNELS * width * height) {
            throw new IllegalArgumentException(
                    "rgb: " + rgb.length + " bytes (expected: " + CHANNELS * width * height + ")");
        }
    }

    /** Returns a channel of a pixel, from 0 to 255. */
    int channel(int x, int y, int channel) {
        return Byte.toUnsignedInt(rgb[CHANNELS * (y * width + x) + channel]);
    }

    /**
     * Returns the picture as it is to be seen.
     *
     * @param orientation the number by which EXIF names how a camera was held, from 1 (upright) to 8
     */
    Picture upright(int orientation) {
        if (orientation == 1) {
            return this;
        }
        boolean turned = orientation > 4;
        int newWidth = turned ? height : width;
        int newHeight = turned ? width : height;
        byte[] moved = new byte[rgb.length];
        for (int y = 0; y < newHeight; y++) {
            for (int x = 0; x < newWidth; x++) {
                int from = source(orientation, x, y);
                System.arraycopy(rgb, CHANNELS * from, moved, CHANNELS * (y * newWidth + x), CHANNELS);
            }
        }
        return new Picture(newWidth, newHeight, moved);
    }

    /** Returns the number of the pixel that comes to a place. */
    private int source(int orientation, int x, int y) {
        int right = width - 1;
        int bottom = height - 1;
        return switch (orientation) {
            case 2 -> y * width + right - x;
            case 3 -> (bottom - y) * width + right - x;
            case 4 -> (bottom - y) * width + x;
            case 5 -> x * width + y;
            case 6 -> (bottom - x) * width + y;
            case 7 -> (bottom - x) * width + right - y;
            case 8 -> x * width + right - y;
            default -> throw new IllegalArgumentException("orientation: " + orientation + " (expected: 1 to 8)");
        };
    }
}
