package dev.nereid.distribution.process;

import dev.nereid.distribution.Main;
import java.util.Map;

/**
 * Services of the process for a command: streams, environment, directories, log levels and shutdown. Immutable; made
 * by {@link Main}, and by tests.
 *
 * @param console where results and errors go
 * @param environment the variables of the environment; immutable
 * @param paths the directories of the installed server
 * @param host the version of the server, and the processors
 * @param logLevels where the levels of the log are set, before anything logs
 * @param shutdown how the process is told to end
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
         * Sets the least level that is logged.
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
