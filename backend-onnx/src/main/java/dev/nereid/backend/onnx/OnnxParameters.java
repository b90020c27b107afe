package dev.nereid.backend.onnx;

import dev.nereid.spi.ModelContext;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Names of the parameters that the configuration of a model may have. Static functions only.
 *
 * <p>Any other parameter is legal, as on the reference server: a similar name is only worth a warning.
 */
final class OnnxParameters {
    static final String INTRA_OP = "intra_op_thread_count";
    static final String INTER_OP = "inter_op_thread_count";
    static final String EXECUTION_MODE = "execution_mode";
    static final String ARENA = "enable_mem_arena";
    static final String PATTERN = "enable_mem_pattern";
    static final String SHRINKAGE = "memory.enable_memory_arena_shrinkage";

    /** Options of a session with this prefix are ONNX Runtime's own, and passed on unread. */
    static final String SESSION_PREFIX = "session.";

    /** The last is the server's own. */
    private static final List<String> NAMES =
            List.of(INTRA_OP, INTER_OP, EXECUTION_MODE, ARENA, PATTERN, SHRINKAGE, "execution_watchdog_secs");

    /** More differing letters are rather another word than a mistake. */
    private static final int MAX_DISTANCE = 2;

    private OnnxParameters() {}

    /** Logs a warning for each parameter of a model whose name is almost a known one. */
    static void warnOfMisspelt(ModelContext context) {
        Map<String, String> sorted = new TreeMap<>(context.settings().parameters());
        for (String name : sorted.keySet()) {
            closest(name)
                    .ifPresent(known -> context.logger()
                            .log(
                                    System.Logger.Level.WARNING,
                                    "unknown parameter '" + name + "'; did you mean '" + known + "'?"));
        }
    }

    /** Returns the known name that a name is probably meant to be; empty for a known name and for one unlike all. */
    static Optional<String> closest(String name) {
        if (NAMES.contains(name) || name.startsWith(SESSION_PREFIX)) {
            return Optional.empty();
        }
        String plain = name.toLowerCase(Locale.ROOT).replace('-', '_');
        return NAMES.stream()
                .filter(known -> Math.abs(known.length() - plain.length()) <= MAX_DISTANCE)
                .filter(known -> distance(plain, known) <= MAX_DISTANCE)
                .min(Comparator.comparingInt(known -> distance(plain, known)));
    }

    /** Counts the letters to insert, delete or replace. */
    private static int distance(String word, String name) {
        int[] row = new int[name.length() + 1];
        for (int j = 0; j < row.length; j++) {
            row[j] = j;
        }
        for (int i = 1; i <= word.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j < row.length; j++) {
                int replaced = diagonal + (word.charAt(i - 1) == name.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[name.length()];
    }
}
