package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

/**
 * What a backend allows and promises about the executions of one model. Immutable.
 *
 * @param backend the backend's name
 * @param clientMemory whether it works in memory of clients, which may go away at any time
 * @param shortExecutions whether executions take microseconds and never block, so that an idle instance may be run by
 *     the thread that submits a request
 * @param blocksDevice whether executions block their graphics processor, so that all instances on it share one thread
 */
public record ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions, boolean blocksDevice) {
    /** What holds for any backend. */
    public static final ExecutionTraits DEFAULT = new ExecutionTraits("", false, false);

    /**
     * Makes the terms of a backend whose executions block no device.
     *
     * @param backend the backend's name
     * @param clientMemory whether it works in memory of clients
     * @param shortExecutions whether executions take microseconds and never block
     */
    public ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions) {
        this(backend, clientMemory, shortExecutions, false);
    }

    /** Checks the components. */
    public ExecutionTraits {
        requireNonNull(backend, "backend");
    }
}
