package dev.nereid.distribution.log;

import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import org.slf4j.event.KeyValuePair;

/** Formats events as pairs {@code key="value"}, one line each; every value but the level is quoted. Immutable. */
final class LogfmtFormatter implements LogFormatter {
    private final DateTimeFormatter time = DateTimeFormatter.ISO_OFFSET_DATE_TIME.withZone(ZoneId.systemDefault());

    @Override
    public void append(StringBuilder lines, LogEvent event) {
        lines.append("time=");
        time.formatTo(event.time(), lines);
        lines.append(" level=").append(event.level().name());
        append(lines, "logger", event.logger(), LogEvent.MAX_VALUE_LENGTH);
        append(lines, "thread", event.thread(), LogEvent.MAX_VALUE_LENGTH);
        append(lines, "msg", event.text(), LogEvent.MAX_TEXT_LENGTH);
        for (KeyValuePair pair : event.data()) {
            append(lines, key(pair.key), LogText.of(pair.value), LogEvent.MAX_VALUE_LENGTH);
        }
        if (event.thrown() != null) {
            append(lines, "exception", event.trace().stripTrailing(), Integer.MAX_VALUE);
        }
        lines.append('\n');
    }

    private static void append(StringBuilder line, String key, String value, int maxLength) {
        line.append(' ').append(key).append("=\"");
        String cut = value.length() <= maxLength ? value : value.substring(0, maxLength) + "…";
        LogText.append(line, cut.replace("\\", "\\\\").replace("\"", "\\\""), Integer.MAX_VALUE);
        line.append('"');
    }

    /** Replaces what a key cannot contain, so that no value of a client looks like a pair. */
    private static String key(String key) {
        return key.replaceAll("[^A-Za-z0-9_.-]", "_");
    }
}
