package dev.nereid.examples.vision;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Writes pictures as networks read them: a plane of red, one of green and one of blue, FP32. Immutable.
 *
 * @param normalization applied to each value from 0 to 255
 */
record Planes(int width, int height, Normalization normalization) {
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** Returns the size of a picture in memory, in bytes. */
    long byteSize() {
        return (long) Picture.CHANNELS * width * height * Float.BYTES;
    }

    /** Scales a whole picture and writes it. */
    void write(Picture picture, MemorySegment target) {
        write(picture, new Box(0, 0, picture.width(), picture.height()), target);
    }

    /** Scales a part of a picture, which is not empty and lies within it, and writes it. */
    void write(Picture picture, Box part, MemorySegment target) {
        Scaling columns = Scaling.of(part.left(), part.right(), picture.width(), width);
        Scaling rows = Scaling.of(part.top(), part.bottom(), picture.height(), height);
        int top = rows.first(0);
        int bottom = rows.first(height - 1) + rows.weights(height - 1).length;
        float[] narrow = new float[Picture.CHANNELS * width * (bottom - top)];
        for (int y = top; y < bottom; y++) {
            scaleRow(picture, y, columns, narrow, Picture.CHANNELS * width * (y - top));
        }
        for (int y = 0; y < height; y++) {
            writeRow(narrow, rows.first(y) - top, rows.weights(y), y, target);
        }
    }

    private static void scaleRow(Picture picture, int y, Scaling columns, float[] target, int at) {
        for (int x = 0; x < columns.size(); x++) {
            float[] weights = columns.weights(x);
            int from = Picture.CHANNELS * (y * picture.width() + columns.first(x));
            float red = 0;
            float green = 0;
            float blue = 0;
            for (float weight : weights) {
                red += weight * Byte.toUnsignedInt(picture.rgb()[from]);
                green += weight * Byte.toUnsignedInt(picture.rgb()[from + 1]);
                blue += weight * Byte.toUnsignedInt(picture.rgb()[from + 2]);
                from += Picture.CHANNELS;
            }
            target[at + Picture.CHANNELS * x] = red;
            target[at + Picture.CHANNELS * x + 1] = green;
            target[at + Picture.CHANNELS * x + 2] = blue;
        }
    }

    private void writeRow(float[] narrow, int first, float[] weights, int y, MemorySegment target) {
        int rowLength = Picture.CHANNELS * width;
        float[] sums = new float[rowLength];
        for (int k = 0; k < weights.length; k++) {
            int from = rowLength * (first + k);
            for (int i = 0; i < rowLength; i++) {
                sums[i] += weights[k] * narrow[from + i];
            }
        }
        for (int c = 0; c < Picture.CHANNELS; c++) {
            long at = ((long) c * height + y) * width * Float.BYTES;
            for (int x = 0; x < width; x++) {
                target.set(FLOAT, at + (long) x * Float.BYTES, normalization.apply(c, sums[Picture.CHANNELS * x + c]));
            }
        }
    }
}
