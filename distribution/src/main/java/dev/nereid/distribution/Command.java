package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.process.StartException;
import java.io.IOException;

/** A command of the {@code nereid} program. Confined to the thread that runs it. */
interface Command {
    String SERVER_EXIT_CODES = """
            0 success; 1 could not start, or not stop in time; 2 wrong command line; 3 heap, metaspace or
            threads exhausted; 130 or 143 second SIGINT or SIGTERM, which end the process at once""";

    String name();

    /** Returns a one-line description of the command. */
    String description();

    /** Returns the first line of the help text: the form of the command line. */
    String synopsis();

    /** Describes the exit codes, for the help text. */
    String exitCodes();

    /** Returns whether shutdown interrupts the command. If not, the command waits for shutdown itself. */
    default boolean isInterruptible() {
        return true;
    }

    void declare(Flags flags);

    /** Runs the command, and returns the exit status. */
    int run() throws UsageException, StartException, RequestException, InterruptedException, IOException;
}
