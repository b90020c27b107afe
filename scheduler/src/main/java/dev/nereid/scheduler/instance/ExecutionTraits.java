package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

/**
 * Properties of the executions of one model, declared by its backend. Immutable.
 *
 * @param backend the backend's name
 * @param clientMemory whether the backend works in memory of clients, which may go away at any time
 * @param shortExecutions whether executions take microseconds and never block, so that direct execution is possible
 * @param blocksDevice whether executions block their GPU, so that all instances on it share one thread
 */
public record ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions, boolean blocksDevice) {
    /** The traits of a backend that declares none. */
    public static final ExecutionTraits DEFAULT = new ExecutionTraits("", false, false);

    /**
     * Creates the traits of a backend whose executions block no device.
     *
     * @param backend the backend's name
     * @param clientMemory whether the backend works in memory of clients
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
