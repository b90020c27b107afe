package dev.nereid.backend.python.environment;

import java.util.Optional;

/**
 * The Python of a loaded model. Safe for use by any thread.
 *
 * <p>Owned by the load, later by the model: until the close the files of an unpacked archive stay.
 * {@link Environments#close} releases all that are not closed.
 */
public final class Interpreter implements AutoCloseable {
    private final ProcessCommand command;
    private final Optional<EnvironmentCache.Lease> lease;

    Interpreter(ProcessCommand command, Optional<EnvironmentCache.Lease> lease) {
        this.command = command;
        this.lease = lease;
    }

    /** Returns the command that starts its processes, the same for all instances. */
    public ProcessCommand command() {
        return command;
    }

    /** Releases the environment, after the end of the last process. Further calls have no effect. */
    @Override
    public void close() {
        lease.ifPresent(EnvironmentCache.Lease::close);
    }
}
