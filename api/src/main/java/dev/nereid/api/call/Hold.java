package dev.nereid.api.call;

import static java.util.Objects.requireNonNull;

/**
 * An execution of a model that waits for a request to another one. Immutable.
 *
 * @param execution the execution, known by identity
 * @param kind the resource that it holds meanwhile
 */
public record Hold(Object execution, Kind kind) {
    /** The resource that an execution holds. */
    public enum Kind {
        /** Nothing: the request that waits was detached from it, and it is deferred or has returned. */
        REQUEST,
        /** The instance, until it returns; afterwards one of the deferred executions of the instance. */
        EXECUTION,
        /** The instance and its thread, which waits. */
        THREAD
    }

    /** Checks the components. */
    public Hold {
        requireNonNull(execution, "execution");
        requireNonNull(kind, "kind");
    }
}
