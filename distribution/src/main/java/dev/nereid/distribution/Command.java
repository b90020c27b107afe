package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.process.StartException;
import java.io.IOException;

/** A command of the {@code nereid} program. Confined to the thread that runs it. */
interface Command {
    CommandForm form();

    /** Returns whether shutdown interrupts the command. If not, the command waits for shutdown itself. */
    default boolean isInterruptible() {
        return true;
    }

    void declare(Flags flags);

    int run() throws UsageException, StartException, RequestException, InterruptedException, IOException;
}
