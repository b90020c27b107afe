package dev.nereid.api;

import java.util.Collection;
import java.util.Locale;
import java.util.Optional;

/** Finds the name that a misspelt word probably means. Static functions only. */
public final class Spelling {
    /** Longer words have no suggestion: the comparison takes time and memory by their length. */
    private static final int MAX_LENGTH = 128;

    private Spelling() {}

    /**
     * Asks for the most similar name, at the end of an error text.
     *
     * @param word the misspelt word, of any length
     * @param names the right words
     * @return {@code " Did you mean '<name>'?"}; empty if no name is similar
     */
    public static String question(String word, Collection<String> names) {
        return closest(word, names)
                .filter(name -> !name.equals(word))
                .map(name -> " Did you mean '" + name + "'?")
                .orElse("");
    }

    /**
     * Finds the most similar name.
     *
     * @param word the misspelt word, of any length
     * @param names the right words
     * @return the first of the most similar names, or empty if none is similar
     */
    public static Optional<String> closest(String word, Collection<String> names) {
        return BestEffort.get("suggestion", Optional.empty(), () -> find(word, names));
    }

    private static Optional<String> find(String word, Collection<String> names) {
        if (word.length() > MAX_LENGTH) {
            return Optional.empty();
        }
        String plain = plain(word);
        int closest = Math.max(1, plain.length() / 3) + 1;
        Optional<String> found = Optional.empty();
        for (String name : names) {
            String other = plain(name);
            boolean isAbbreviation = isAbbreviation(plain, other);
            if (!isAbbreviation && Math.abs(plain.length() - other.length()) >= closest) {
                continue; // at least so many letters differ
            }
            int distance = isAbbreviation ? 1 : distance(plain, other);
            if (distance < closest) {
                closest = distance;
                found = Optional.of(name);
            }
        }
        return found;
    }

    private static String plain(String word) {
        return word.toLowerCase(Locale.ROOT).replace('-', '_');
    }

    /** Returns whether a word is the last part of a name, or omits at most half of its letters: fp32, dtype. */
    private static boolean isAbbreviation(String word, String name) {
        if (name.endsWith("_" + word)) {
            return true;
        }
        if (word.isEmpty() || name.isEmpty() || word.charAt(0) != name.charAt(0) || word.length() * 2 < name.length()) {
            return false;
        }
        int matched = 0;
        for (int i = 0; i < name.length() && matched < word.length(); i++) {
            if (name.charAt(i) == word.charAt(matched)) {
                matched++;
            }
        }
        return matched == word.length();
    }

    /** Counts the letters to insert, delete, replace or exchange with their neighbor. */
    private static int distance(String word, String name) {
        int[] beforePrevious = new int[name.length() + 1];
        int[] previous = new int[name.length() + 1];
        int[] current = new int[name.length() + 1];
        for (int j = 0; j <= name.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= word.length(); i++) {
            current[0] = i;
            for (int j = 1; j <= name.length(); j++) {
                int replaced = previous[j - 1] + (word.charAt(i - 1) == name.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(replaced, 1 + Math.min(previous[j], current[j - 1]));
                if (i > 1
                        && j > 1
                        && word.charAt(i - 1) == name.charAt(j - 2)
                        && word.charAt(i - 2) == name.charAt(j - 1)) {
                    current[j] = Math.min(current[j], beforePrevious[j - 2] + 1);
                }
            }
            int[] free = beforePrevious;
            beforePrevious = previous;
            previous = current;
            current = free;
        }
        return previous[name.length()];
    }
}
