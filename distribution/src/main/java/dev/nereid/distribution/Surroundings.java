package dev.nereid.distribution;

import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Map;

/**
 * What a command may use of the process it runs in. Immutable; made by {@link Main}, and by tests.
 *
 * @param out where answers go
 * @param err where errors go
 * @param environment the variables of the environment; immutable
 * @param home the folder of the installed server: {@code plugins}, {@code examples}
 * @param temporary a directory for this user's temporary files, which need not exist
 * @param version the version of the server
 * @param processors how many processors the process may use
 * @param logLevels where the levels of the log are set, before anything logs
 * @param stop how the process is told to end
 * @param fatalExit ends the process when its memory is exhausted
 */
record Surroundings(
        PrintStream out,
        PrintStream err,
        Map<String, String> environment,
        Path home,
        Path temporary,
        String version,
        int processors,
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
