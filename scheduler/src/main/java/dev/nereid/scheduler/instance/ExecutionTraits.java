package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import java.util.concurrent.Executor;

/**
 * Properties of the executions of one model, declared by its backend. Immutable.
 *
 * @param backend the backend's name
 * @param clientMemory whether the backend works in memory of clients, which may go away at any time
 * @param shortExecutions whether executions take microseconds and never block, so that direct execution is possible
 * @param blocksDevice whether executions block their GPU, so that all instances on it share one thread
 * @param actions runs actions of the backend that are no executions, such as those of
 *     {@link dev.nereid.spi.ResponseSender#onReady}; never on the calling thread
 */
public record ExecutionTraits(
        String backend, boolean clientMemory, boolean shortExecutions, boolean blocksDevice, Executor actions) {
    /** The traits of a backend that declares none. */
    public static final ExecutionTraits DEFAULT = new ExecutionTraits("", false, false);

    /**
     * Creates the traits of a backend whose executions block no device. Its actions run on virtual threads.
     *
     * @param backend the backend's name
     * @param clientMemory whether the backend works in memory of clients
     * @param shortExecutions whether executions take microseconds and never block
     */
    public ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions) {
        this(backend, clientMemory, shortExecutions, false);
    }

    /**
     * Creates the traits of a backend whose actions run on virtual threads.
     *
     * @param backend the backend's name
     * @param clientMemory whether the backend works in memory of clients
     * @param shortExecutions whether executions take microseconds and never block
     * @param blocksDevice whether executions block their GPU
     */
    public ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions, boolean blocksDevice) {
        this(backend, clientMemory, shortExecutions, blocksDevice, Thread::startVirtualThread);
    }

    /**
     * Returns the same traits with another executor of actions.
     *
     * @param changed runs actions of the backend that are no executions, never on the calling thread
     * @return the changed traits
     */
    public ExecutionTraits withActions(Executor changed) {
        return new ExecutionTraits(backend, clientMemory, shortExecutions, blocksDevice, changed);
    }

    /** Checks the components. */
    public ExecutionTraits {
        requireNonNull(backend, "backend");
        requireNonNull(actions, "actions");
    }
}
