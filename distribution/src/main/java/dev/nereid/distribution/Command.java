package dev.nereid.distribution;

import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.StartException;
import java.io.IOException;

/** A command of the {@code nereid} program. Confined to the thread that runs it. */
interface Command {
    /** Returns the word. */
    String name();

    /** Returns what the command does, in one line. */
    String description();

    /** Returns the command line in short, as the help text begins. */
    String synopsis();

    /** Adds the flags that set up the command. */
    void declare(Flags flags);

    /** Runs the command, and returns the exit status. */
    int run() throws StartException, InterruptedException, IOException;
}
