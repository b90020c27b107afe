package dev.nereid.examples.vision;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The best of the scores of one item. Immutable.
 *
 * @param entries the best scores, the highest first
 */
record Ranking(List<Entry> entries) {
    private static final int FIRST_PRINTABLE = ' ';

    /** A score. Immutable. */
    record Entry(int output, String label, float score) {
        String json() {
            return String.format(
                    Locale.ROOT, "{\"label\":%s,\"score\":%.4f,\"output\":%d}", quoted(label), score, output);
        }
    }

    Ranking {
        entries = List.copyOf(entries);
    }

    /** Ranks scores, of which none is NaN. Of equal scores the first comes first. */
    static Ranking of(float[] scores, Labels labels, int count) {
        return new Ranking(IntStream.range(0, scores.length)
                .boxed()
                .sorted(Comparator.comparingDouble(output -> -scores[output]))
                .limit(count)
                .map(output -> new Entry(output, labels.of(output), scores[output]))
                .toList());
    }

    /** Returns the best label and its score, and the list of all entries. */
    String json() {
        Entry best = entries.getFirst();
        String all = entries.stream().map(Entry::json).collect(Collectors.joining(",", "[", "]"));
        return String.format(
                Locale.ROOT, "{\"label\":%s,\"score\":%.4f,\"top\":%s}", quoted(best.label()), best.score(), all);
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < FIRST_PRINTABLE) {
                quoted.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
