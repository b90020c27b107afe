package dev.nereid.distribution.process;

import java.util.Map;

/**
 * Services of the process for a command: streams, environment, directories, log levels and shutdown. Immutable.
 *
 * @param console the streams of results and errors
 * @param environment the environment variables; immutable
 * @param paths the directories of the installed server
 * @param host the version of the server, and the processors
 * @param logLevels sets the levels of the log, before anything is logged
 * @param shutdown coordinates the shutdown of the process
 * @param outOfMemoryExit ends the process when its memory is exhausted
 */
public record CommandContext(
        ConsoleStreams console,
        Map<String, String> environment,
        InstallationPaths paths,
        HostInfo host,
        LogLevels logLevels,
        ProcessShutdown shutdown,
        OutOfMemoryExit outOfMemoryExit) {
    /** Sets the levels of the log. */
    public interface LogLevels {
        /**
         * Sets the lowest level that is logged.
         *
         * @param nereid the level of the server itself
         * @param libraries the level of everything else
         */
        void set(String nereid, String libraries);
    }

    public CommandContext {
        environment = Map.copyOf(environment);
    }
}
