package dev.nereid.distribution.log;

/** Formats events of the log. Implementations are safe for use by any thread. */
interface LogFormatter {
    /**
     * Appends an event with the line break at its end. No character of the event can begin another line, unless the
     * format has lines for stack traces.
     */
    void append(StringBuilder lines, LogEvent event);
}
