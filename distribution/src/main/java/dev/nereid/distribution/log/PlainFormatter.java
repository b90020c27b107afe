package dev.nereid.distribution.log;

import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.List;
import org.slf4j.event.KeyValuePair;

/** Formats events for people: time, thread, level, logger, data, text; then lines of the stack trace. Immutable. */
final class PlainFormatter implements LogFormatter {
    private final DateTimeFormatter time =
            DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS").withZone(ZoneId.systemDefault());

    @Override
    public void append(StringBuilder lines, LogEvent event) {
        time.formatTo(event.time(), lines);
        lines.append(" [");
        LogText.append(lines, event.thread(), LogEvent.MAX_VALUE_LENGTH);
        lines.append("] ")
                .append(event.level().name())
                .append(' ')
                .append(event.shortLogger())
                .append(" - ");
        appendText(lines, event.data(), event.text());
        lines.append('\n').append(event.trace());
    }

    static void appendText(StringBuilder line, List<KeyValuePair> data, String text) {
        for (KeyValuePair pair : data) {
            LogText.append(line, pair.key, LogEvent.MAX_VALUE_LENGTH);
            line.append('=');
            LogText.append(line, LogText.of(pair.value), LogEvent.MAX_VALUE_LENGTH);
            line.append(' ');
        }
        LogText.append(line, text, LogEvent.MAX_TEXT_LENGTH);
    }
}
