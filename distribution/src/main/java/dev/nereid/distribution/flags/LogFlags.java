package dev.nereid.distribution.flags;

import dev.nereid.distribution.log.LogFormat;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.LogSettings;
import dev.nereid.distribution.process.StartException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Flags of the log. Written by the command line reader, then only read. */
public final class LogFlags {
    private static final String FORMAT_FLAG = "--log-format";

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

    public void declare(Flags flags) {
        declared = flags;
        flags.logNotices();
        flags.add("--log-verbose", FlagValue.VERBOSITY, verbose, v -> verbose = v)
                .help("How much more than usual is logged: 1 or 2.");
        flags.add("--log-info", FlagValue.TRUTH, info, v -> info = v).help("Whether changes of state are logged.");
        flags.add("--log-warning", FlagValue.TRUTH, warning, v -> warning = v)
                .help("Whether warnings are logged. Off needs --log-info off.");
        flags.add("--log-error", FlagValue.TRUTH, error, v -> error = v)
                .help("Whether errors are logged. Off needs --log-warning off.");
        flags.add(FORMAT_FLAG, FORMAT, format, v -> format = v)
                .help("How lines are formatted: default for people, ISO8601 as at the reference server, json or"
                        + " logfmt for programs. With another one than default, the start-up table is printed on"
                        + " terminals only.");
        flags.add("--log-file", FlagValue.FILE, v -> file = Optional.of(v))
                .help("A file to which the log is appended. Default: standard error.");
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

    public LogFormat format() {
        return format;
    }

    /** Returns the existing format that a command line asks for, also if other parts are wrong; else the default. */
    public static LogFormat formatOf(List<String> arguments, Map<String, String> environment) {
        String name = environment.getOrDefault("NEREID_LOG_FORMAT", "");
        for (int i = 0; i < arguments.size(); i++) {
            String argument = arguments.get(i);
            if (argument.startsWith(FORMAT_FLAG + "=")) {
                name = argument.substring(FORMAT_FLAG.length() + 1);
            } else if (argument.equals(FORMAT_FLAG) && i + 1 < arguments.size()) {
                name = arguments.get(i + 1);
            }
        }
        return LogFormat.named(name).orElse(LogFormat.DEFAULT);
    }

    private String own() {
        return switch (verbose) {
            case 0 -> "info";
            case 1 -> "debug";
            default -> "trace";
        };
    }
}
