package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.Shape;

/**
 * The limits of an input in one optimization profile: of its dimensions, or of its values for a shape tensor. Immutable.
 *
 * @param min the smallest
 * @param opt the values that the engine is optimized for
 * @param max the largest
 */
public record ProfileRange(Shape min, Shape opt, Shape max) {
    /** Returns whether dimensions or values are within the limits. */
    public boolean contains(Shape shape) {
        if (shape.rank() != min.rank()) {
            return false;
        }
        for (int i = 0; i < shape.rank(); i++) {
            if (shape.dim(i) < min.dim(i) || shape.dim(i) > max.dim(i)) {
                return false;
            }
        }
        return true;
    }

    /** Returns how far dimensions or values are from the optimum; 0 for the optimum. */
    public long distance(Shape shape) {
        long sum = 0;
        for (int i = 0; i < shape.rank(); i++) {
            sum += Math.abs(shape.dim(i) - opt.dim(i));
        }
        return sum;
    }

    @Override
    public String toString() {
        return min + " to " + max;
    }
}
