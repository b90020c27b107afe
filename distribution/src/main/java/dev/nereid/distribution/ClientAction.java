package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;

/** The flags and the request of one client command. Confined to the thread that runs the command. */
interface ClientAction {
    /** Declares the operand and the flags that other client commands do not have. */
    void declare(Flags flags);

    /** Sends the request, and returns the text to print. */
    String run(ServerClient server) throws UsageException, RequestException, InterruptedException;

    /** Returns the text to print on standard output if the request fails; empty for none. */
    default String failure(RequestException error) {
        return "";
    }
}
