package dev.nereid.distribution.log;

import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

/**
 * Formats events as the reference server does with {@code --log-format=ISO8601}: time in UTC, first letter of the level,
 * process, source, text. The source is the place in the code that a plugin gives, or else the logger. Immutable.
 */
final class Iso8601Formatter implements LogFormatter {
    private static final DateTimeFormatter TIME =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss'Z'").withZone(ZoneOffset.UTC);

    private final long process = ProcessHandle.current().pid();

    @Override
    public void append(StringBuilder lines, LogEvent event) {
        TIME.formatTo(event.time(), lines);
        char letter = switch (event.level()) {
            case ERROR -> 'E';
            case WARN -> 'W';
            case INFO, DEBUG, TRACE -> 'I'; // as verbose lines of the reference server
        };
        lines.append(' ').append(letter).append(' ').append(process).append(' ');
        LogText.append(lines, event.place().orElseGet(event::shortLogger), LogEvent.MAX_VALUE_LENGTH);
        lines.append("] ");
        PlainFormatter.appendText(lines, event.dataBesidePlace(), event.text());
        lines.append('\n').append(event.trace());
    }
}
