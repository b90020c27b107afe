package dev.nereid.distribution.log;

import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;
import org.slf4j.event.Level;

/**
 * One event of the log, before it is formatted. Immutable.
 *
 * @param time when it was logged
 * @param logger the full name of the logger
 * @param data keys with values, in order
 * @param text the text, with its arguments in place
 * @param thrown its cause; {@code null} for none
 */
record LogEvent(
        Instant time,
        String thread,
        Level level,
        String logger,
        List<KeyValuePair> data,
        String text,
        @Nullable Throwable thrown) {
    private static final String FILE = "file";
    private static final String LINE = "line";

    /** Maximum characters of one value. */
    static final int MAX_VALUE_LENGTH = 4096;

    /** Maximum characters of a text. */
    static final int MAX_TEXT_LENGTH = 16384;

    /** Returns the name of the logger without its package. */
    String shortLogger() {
        return logger.substring(logger.lastIndexOf('.') + 1);
    }

    /** Returns {@code file} and {@code line} that a plugin has given, such as {@code model.py:12}; empty for none. */
    Optional<String> place() {
        return value(FILE).flatMap(file -> value(LINE).map(line -> file + ":" + line));
    }

    List<KeyValuePair> dataBesidePlace() {
        return place().isEmpty()
                ? data
                : data.stream()
                        .filter(pair -> !pair.key.equals(FILE) && !pair.key.equals(LINE))
                        .toList();
    }

    private Optional<String> value(String key) {
        return data.stream().filter(pair -> pair.key.equals(key)).findFirst().map(pair -> LogText.of(pair.value));
    }

    /** Returns the stack trace of the cause, which ends with a line break; empty if there is none. */
    String trace() {
        StringBuilder trace = new StringBuilder();
        if (thrown != null) {
            LogTrace.append(trace, thrown);
        }
        return trace.toString();
    }
}
