package dev.nereid.distribution.process;

import dev.nereid.distribution.log.LogFormat;
import java.util.Map;

/**
 * Services of the process for a command: streams, environment, directories, log and shutdown. Immutable.
 *
 * @param console the streams of results and errors
 * @param environment the environment variables; immutable
 * @param paths the directories of the installed server
 * @param host the version of the server, and the processors
 * @param log sets up the log, before anything is logged
 * @param outOfMemoryExit ends the process when its memory is exhausted
 * @param processes the parent of the process, and how it starts children
 */
public record CommandContext(
        ConsoleStreams console,
        Map<String, String> environment,
        InstallationPaths paths,
        HostInfo host,
        LogSetup log,
        ProcessShutdown shutdown,
        OutOfMemoryExit outOfMemoryExit,
        ProcessTree processes) {
    /** Sets up the log. */
    public interface LogSetup {
        /** Sets levels, format and destination of the log; fails if the file cannot be written. */
        void apply(LogSettings settings) throws StartException;
    }

    /** Returns the services with errors in another format. */
    public CommandContext withFormat(LogFormat format) {
        return new CommandContext(
                console.withFormat(format), environment, paths, host, log, shutdown, outOfMemoryExit, processes);
    }

    public CommandContext {
        environment = Map.copyOf(environment);
    }
}
