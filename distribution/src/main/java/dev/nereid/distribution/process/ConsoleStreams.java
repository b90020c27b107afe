package dev.nereid.distribution.process;

import dev.nereid.distribution.log.LogFormat;
import java.io.PrintStream;
import java.time.InstantSource;

/**
 * The console of a command. Immutable.
 *
 * @param isTerminal whether a person reads them
 * @param format the format of errors: that of the log, so that all lines of a server have the same
 */
public record ConsoleStreams(PrintStream out, PrintStream err, boolean isTerminal, LogFormat format) {
    /** Creates a console with errors for people. */
    public ConsoleStreams(PrintStream out, PrintStream err, boolean isTerminal) {
        this(out, err, isTerminal, LogFormat.DEFAULT);
    }

    /** Returns this console with errors of another format. */
    public ConsoleStreams withFormat(LogFormat changed) {
        return new ConsoleStreams(out, err, isTerminal, changed);
    }

    /** Returns whether the start-up table is printed. It would be no line of a log that programs read. */
    public boolean hasReport() {
        return format == LogFormat.DEFAULT || isTerminal;
    }

    /** Writes an error in one line. */
    public void error(String name, String problem) {
        if (format == LogFormat.DEFAULT) {
            err.println(name + ": " + problem);
        } else {
            err.print(format.error(name + ": " + problem, InstantSource.system()));
            err.flush();
        }
    }
}
