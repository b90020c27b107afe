package dev.nereid.distribution;

import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.StartException;
import java.io.IOException;

/** A command of the {@code nereid} program. Confined to the thread that runs it. */
interface Command {
    /** Returns the command's name. */
    String name();

    /** Returns a one-line description of the command. */
    String description();

    /** Returns the first line of the help text: the form of the command line. */
    String synopsis();

    /** Declares the flags of the command. */
    void declare(Flags flags);

    /** Runs the command, and returns the exit status. */
    int run() throws StartException, InterruptedException, IOException;
}
