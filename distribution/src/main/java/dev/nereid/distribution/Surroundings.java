package dev.nereid.distribution;

import java.util.Map;

/**
 * What a command may use of the process it runs in. Immutable; made by {@link Main}, and by tests.
 *
 * @param console where results and errors go
 * @param environment the variables of the environment; immutable
 * @param paths the directories of the installed server
 * @param host the version of the server, and the processors
 * @param logLevels where the levels of the log are set, before anything logs
 * @param stop how the process is told to end
 * @param fatalExit ends the process when its memory is exhausted
 */
record Surroundings(
        ConsoleStreams console,
        Map<String, String> environment,
        InstallationPaths paths,
        HostInfo host,
        LogLevels logLevels,
        StopSignal stop,
        FatalExit fatalExit) {
    /** Sets the levels of the log. */
    interface LogLevels {
        /**
         * Sets the least level that is logged.
         *
         * @param nereid the level of the server itself
         * @param libraries the level of everything else
         */
        void set(String nereid, String libraries);
    }

    Surroundings {
        environment = Map.copyOf(environment);
    }
}
