package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.StartException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Flags of the log levels. Written by the command line reader, then only read. */
public final class LogFlags {
    private static final Logger LOG = LoggerFactory.getLogger(LogFlags.class);

    private Flags declared = new Flags();
    private int verbose;
    private boolean info = true;
    private boolean warning = true;
    private boolean error = true;

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
                        value -> error = value));
    }

    /**
     * Sets the levels of the log, and logs the notices about flags. The log has one minimum level, so a level that is
     * off must not be above one that is on.
     */
    public void apply(CommandContext.LogLevels levels) throws StartException {
        if (info && !warning) {
            throw new StartException("--log-warning: false (expected: true while --log-info is true)");
        }
        if (warning && !error) {
            throw new StartException("--log-error: false (expected: true while --log-warning is true)");
        }
        String libraries = warning ? "warn" : error ? "error" : "off";
        levels.set(info ? own() : libraries, libraries);
        declared.notices().forEach(LOG::warn);
    }

    private String own() {
        return switch (verbose) {
            case 0 -> "info";
            case 1 -> "debug";
            default -> "trace";
        };
    }
}
