package dev.nereid.distribution.log;

import java.time.InstantSource;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.slf4j.event.Level;

/** The formats of log lines, by their names on the command line. */
public enum LogFormat {
    /** For people: time, thread, level, logger, data, text. */
    DEFAULT("default") {
        @Override
        LogFormatter formatter() {
            return new PlainFormatter();
        }
    },

    /** That of the reference server with times in ISO 8601. */
    ISO8601("ISO8601") {
        @Override
        LogFormatter formatter() {
            return new Iso8601Formatter();
        }
    },

    /** A JSON object in each line. */
    JSON("json") {
        @Override
        LogFormatter formatter() {
            return new JsonFormatter();
        }
    },

    /** Pairs {@code key="value"} in each line. */
    LOGFMT("logfmt") {
        @Override
        LogFormatter formatter() {
            return new LogfmtFormatter();
        }
    };

    /** The name of the logger of errors that are reported outside of the log. */
    private static final String PROGRAM = "nereid";

    private final String label;

    LogFormat(String label) {
        this.label = label;
    }

    /** Creates the formatter, which any thread may use. */
    abstract LogFormatter formatter();

    /** Returns an error outside of the log, such as a wrong command line, as a line of the log with its end. */
    public String error(String text, InstantSource time) {
        StringBuilder line = new StringBuilder();
        formatter()
                .append(
                        line,
                        new LogEvent(
                                time.instant(),
                                Thread.currentThread().getName(),
                                Level.ERROR,
                                PROGRAM,
                                List.of(),
                                text,
                                null));
        return line.toString();
    }

    /** Finds a format by its case-sensitive name, as the reference server's are; empty if there is none. */
    public static Optional<LogFormat> named(String name) {
        return Arrays.stream(values())
                .filter(format -> format.label.equals(name))
                .findFirst();
    }

    /** Returns the names, for errors and the help text. */
    public static String names() {
        return Arrays.stream(values()).map(format -> format.label).collect(Collectors.joining(", "));
    }

    @Override
    public String toString() {
        return label.toLowerCase(Locale.ROOT);
    }
}
