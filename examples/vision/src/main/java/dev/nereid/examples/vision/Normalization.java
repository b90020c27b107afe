package dev.nereid.examples.vision;

import dev.nereid.spi.Parameters;

/**
 * Turns values from 0 to 255 into those that a network was trained with: {@code (value / 255 - mean) / deviation}.
 * Immutable.
 */
final class Normalization {
    private static final float LARGEST = 255;

    private final float[] factors;
    private final float[] offsets;

    Normalization(float[] means, float[] deviations) {
        factors = new float[Picture.CHANNELS];
        offsets = new float[Picture.CHANNELS];
        for (int c = 0; c < Picture.CHANNELS; c++) {
            factors[c] = 1 / (LARGEST * deviations[c]);
            offsets[c] = -means[c] / deviations[c];
        }
    }

    /** Reads the parameters {@code mean} and {@code deviation}: three numbers each, for red, green and blue. */
    static Normalization of(Parameters parameters) {
        float[] deviations = numbers(parameters, "deviation", "1, 1, 1");
        for (float deviation : deviations) {
            if (deviation <= 0) {
                throw parameters.invalid("deviation", "three numbers above 0");
            }
        }
        return new Normalization(numbers(parameters, "mean", "0, 0, 0"), deviations);
    }

    private static float[] numbers(Parameters parameters, String name, String standard) {
        String text = parameters.text(name).orElse(standard);
        String[] parts = text.split(",", -1);
        float[] found = new float[Picture.CHANNELS];
        try {
            for (int c = 0; c < found.length && parts.length == found.length; c++) {
                found[c] = Float.parseFloat(parts[c].strip());
            }
        } catch (NumberFormatException e) {
            found[0] = Float.NaN;
        }
        if (parts.length != found.length || !Float.isFinite(found[0] + found[1] + found[2])) {
            throw parameters.invalid(name, "three numbers, for red, green and blue");
        }
        return found;
    }

    float apply(int channel, float value) {
        return value * factors[channel] + offsets[channel];
    }
}
