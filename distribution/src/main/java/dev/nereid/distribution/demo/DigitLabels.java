package dev.nereid.distribution.demo;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Locale;

/** Labels of the outputs of the model {@code digits}, in order. Immutable. */
public record DigitLabels(List<String> labels) {
    public DigitLabels {
        labels = List.copyOf(labels);
    }

    /** Returns the most probable label and its probability. */
    public String best(ByteBuffer response) {
        ByteBuffer probabilities = response.slice().order(ByteOrder.LITTLE_ENDIAN);
        if (probabilities.remaining() != labels.size() * Float.BYTES) {
            throw new IllegalArgumentException("response: " + probabilities.remaining() + " bytes (expected: "
                    + labels.size() * Float.BYTES + ")");
        }
        int best = 0;
        for (int i = 1; i < labels.size(); i++) {
            if (probability(probabilities, i) > probability(probabilities, best)) {
                best = i;
            }
        }
        return String.format(Locale.ROOT, "%s %.4f", labels.get(best), probability(probabilities, best));
    }

    private static float probability(ByteBuffer probabilities, int index) {
        return probabilities.getFloat(index * Float.BYTES);
    }
}
