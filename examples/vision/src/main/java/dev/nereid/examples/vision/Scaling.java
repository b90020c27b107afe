package dev.nereid.examples.vision;

/**
 * The pixels that one row or column of a scaled picture is made of, with their weights. Immutable.
 *
 * <p>The filter is a triangle as wide as a pixel of the smaller picture: bilinear interpolation for larger pictures, and a
 * weighted mean of all pixels for smaller ones. Training has used the same, that of Pillow.
 */
final class Scaling {
    private final int[] first;
    private final float[][] weights;

    private Scaling(int[] first, float[][] weights) {
        this.first = first;
        this.weights = weights;
    }

    /**
     * Computes the weights of one direction.
     *
     * @param begin where the part of the picture begins, in pixels from 0
     * @param limit the size of the whole picture
     * @param size the size of the result
     */
    static Scaling of(double begin, double end, int limit, int size) {
        double scale = (end - begin) / size;
        double reach = Math.max(1, scale);
        int[] first = new int[size];
        float[][] weights = new float[size][];
        for (int i = 0; i < size; i++) {
            double center = begin + (i + 0.5) * scale;
            int low = Math.clamp((long) (center - reach + 0.5), 0, limit - 1);
            int high = Math.clamp((long) (center + reach + 0.5), low + 1, limit);
            first[i] = low;
            weights[i] = weights(low, high, center, reach);
        }
        return new Scaling(first, weights);
    }

    private static float[] weights(int low, int high, double center, double reach) {
        float[] found = new float[high - low];
        float sum = 0;
        for (int k = 0; k < found.length; k++) {
            found[k] = (float) Math.max(0, 1 - Math.abs(low + k + 0.5 - center) / reach);
            sum += found[k];
        }
        for (int k = 0; k < found.length; k++) {
            found[k] /= sum;
        }
        return found;
    }

    int size() {
        return first.length;
    }

    /** Returns the first pixel of one of the result. */
    int first(int index) {
        return first[index];
    }

    /** Returns the weights of the pixels from the first on; not to be changed. */
    float[] weights(int index) {
        return weights[index];
    }
}
