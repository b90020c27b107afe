package dev.nereid.distribution;

import picocli.CommandLine.Option;

/** The flags of the log. Written by the command line reader, then only read. */
final class LogFlags {
    @Option(
            names = "--log-verbose",
            paramLabel = "N",
            defaultValue = "0",
            converter = FlagValues.Verbosity.class,
            description = "How much more than usual is logged: 1 or 2. Default: ${DEFAULT-VALUE}.")
    private int verbose;

    @Option(
            names = "--log-info",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether changes of state are logged. Default: ${DEFAULT-VALUE}.")
    private boolean info = true;

    @Option(
            names = "--log-warning",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether warnings are logged. Off needs --log-info off. Default: ${DEFAULT-VALUE}.")
    private boolean warning = true;

    @Option(
            names = "--log-error",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether errors are logged. Off needs --log-warning off. Default: ${DEFAULT-VALUE}.")
    private boolean error = true;

    /** Sets the levels of the log. The log has one least level, so what is off must not be worse than what is on. */
    void apply(Surroundings.LogLevels levels) throws StartFailure {
        if (info && !warning) {
            throw new StartFailure("--log-warning: false (expected: true while --log-info is true)");
        }
        if (warning && !error) {
            throw new StartFailure("--log-error: false (expected: true while --log-warning is true)");
        }
        String libraries = warning ? "warn" : error ? "error" : "off";
        levels.set(info ? own() : libraries, libraries);
    }

    private String own() {
        return switch (verbose) {
            case 0 -> "info";
            case 1 -> "debug";
            default -> "trace";
        };
    }
}
