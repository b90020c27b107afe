package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.request.AcceptedMemory;
import dev.nereid.spi.MemoryPlace;
import java.util.Set;
import java.util.concurrent.Executor;

/**
 * Properties of the executions of one model, declared by its backend. Immutable.
 *
 * @param backend the backend's name
 * @param accepted the memory in which the backend works
 * @param shortExecutions whether executions take microseconds and never block, so that direct execution is possible
 * @param blocksDevice whether executions block their GPU, so that all instances on it share one thread
 * @param actions runs actions of the backend that are no executions, such as those of
 *     {@link dev.nereid.spi.ResponseSender#onReady}; never on the calling thread
 */
public record ExecutionTraits(
        String backend, AcceptedMemory accepted, boolean shortExecutions, boolean blocksDevice, Executor actions) {
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
        this(backend, new AcceptedMemory(clientMemory, AcceptedMemory.HOST.places()), shortExecutions, false);
    }

    /**
     * Creates the traits of a backend whose actions run on virtual threads.
     *
     * @param backend the backend's name
     * @param accepted the memory in which the backend works
     * @param shortExecutions whether executions take microseconds and never block
     * @param blocksDevice whether executions block their GPU
     */
    public ExecutionTraits(String backend, AcceptedMemory accepted, boolean shortExecutions, boolean blocksDevice) {
        this(backend, accepted, shortExecutions, blocksDevice, Thread::startVirtualThread);
    }

    /**
     * Returns the same traits with another executor of actions.
     *
     * @param changed runs actions of the backend that are no executions, never on the calling thread
     * @return the changed traits
     */
    public ExecutionTraits withActions(Executor changed) {
        return new ExecutionTraits(backend, accepted, shortExecutions, blocksDevice, changed);
    }

    /** Checks the components. */
    public ExecutionTraits {
        requireNonNull(backend, "backend");
        requireNonNull(accepted, "accepted");
        requireNonNull(actions, "actions");
    }

    /**
     * Returns the same traits for a backend that accepts inputs in other places.
     *
     * @param kinds the kinds of memory in which inputs may lie
     * @return the changed traits
     */
    public ExecutionTraits withPlaces(Set<MemoryPlace.Kind> kinds) {
        AcceptedMemory changed = new AcceptedMemory(accepted.ofClients(), kinds);
        return new ExecutionTraits(backend, changed, shortExecutions, blocksDevice, actions);
    }
}
