package dev.nereid.distribution.flags;

import dev.nereid.distribution.log.LogFormat;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ConsoleStreams;
import dev.nereid.distribution.process.LogSettings;
import dev.nereid.distribution.process.StartException;
import java.nio.file.Path;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Flags of the log. Written by the command line reader, then only read. */
public final class LogFlags {
    private static final FlagValue<LogFormat> FORMAT =
            new FlagValue<>("FORMAT", "one of " + LogFormat.names(), LogFormat::named);

    private static final Logger LOG = LoggerFactory.getLogger(LogFlags.class);

    private Flags declared = new Flags();
    private int verbose;
    private boolean info = true;
    private boolean warning = true;
    private boolean error = true;
    private LogFormat format = LogFormat.DEFAULT;
    private Optional<Path> file = Optional.empty();

    /** Adds the flags that set these fields. */
    public void declare(Flags flags) {
        declared = flags;
        flags.logNotices();
        flags.add(
                Flag.of(
                        "--log-verbose",
                        FlagValue.VERBOSITY,
                        "How much more than usual is logged: 1 or 2. Default: 0.",
                        value -> verbose = value),
                Flag.of(
                        "--log-info",
                        FlagValue.TRUTH,
                        "Whether changes of state are logged. Default: true.",
                        value -> info = value),
                Flag.of(
                        "--log-warning",
                        FlagValue.TRUTH,
                        "Whether warnings are logged. Off needs --log-info off. Default: true.",
                        value -> warning = value),
                Flag.of(
                        "--log-error",
                        FlagValue.TRUTH,
                        "Whether errors are logged. Off needs --log-warning off. Default: true.",
                        value -> error = value),
                Flag.of(
                        "--log-format",
                        FORMAT,
                        "How lines are formatted: default for people, ISO8601 as at the reference server, json or"
                                + " logfmt for programs. With another one than default, the start-up table is printed"
                                + " on terminals only. Default: default.",
                        value -> format = value),
                Flag.of(
                        "--log-file",
                        FlagValue.FILE,
                        "A file to which the log is appended. Default: standard error.",
                        value -> file = Optional.of(value)));
    }

    /**
     * Sets up the log, and logs the notices about flags. The log has one minimum level, so a level that is
     * off must not be above one that is on.
     */
    public void apply(CommandContext.LogSetup setup) throws StartException {
        if (info && !warning) {
            throw new StartException("--log-warning: false (expected: true while --log-info is true)");
        }
        if (warning && !error) {
            throw new StartException("--log-error: false (expected: true while --log-warning is true)");
        }
        String libraries = warning ? "warn" : error ? "error" : "off";
        setup.apply(new LogSettings(info ? own() : libraries, libraries, format, file));
        declared.notices().forEach(LOG::warn);
    }

    /** Returns whether the start-up table is printed. It would be no line of a log that programs read. */
    public boolean hasReport(ConsoleStreams console) {
        return format == LogFormat.DEFAULT || console.isTerminal();
    }

    /** Returns whether standard error is a log that programs read, so that every line of it has to be one of the log. */
    public boolean isErrorStream(ConsoleStreams console) {
        return file.isEmpty() && !hasReport(console);
    }

    private String own() {
        return switch (verbose) {
            case 0 -> "info";
            case 1 -> "debug";
            default -> "trace";
        };
    }
}
