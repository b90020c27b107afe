package dev.nereid.distribution.process;

import dev.nereid.distribution.log.LogFormat;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Settings of the log. Immutable.
 *
 * @param nereid the lowest level of the server itself that is logged: trace, debug, info, warn, error or off
 * @param libraries the lowest level of everything else
 * @param file the file to which lines are appended; empty for the standard error stream
 */
public record LogSettings(String nereid, String libraries, LogFormat format, Optional<Path> file) {
    /** Returns settings of the default format on the standard error stream. */
    public static LogSettings levels(String nereid, String libraries) {
        return new LogSettings(nereid, libraries, LogFormat.DEFAULT, Optional.empty());
    }
}
