package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.handle.PluginHandles;
import dev.nereid.scheduler.memory.AcceptedMemory;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.MemoryPlace;
import java.util.Set;

/**
 * Properties of the executions of one model, declared by its backend. Immutable.
 *
 * @param backend the backend's name
 * @param accepted the memory in which the backend works
 * @param shortExecutions whether executions take microseconds and never block, so that direct execution is possible
 * @param blocksDevice whether executions block their GPU, so that all instances on it share one thread
 * @param maxDeferred the largest number of deferred executions of an instance, or of instances that share a thread; at
 *     least 1
 * @param lastingThreads whether the thread of an instance lasts as long as the instance; otherwise it may end while
 *     there is no work, and a new thread follows
 * @param callbacks calls code of the backend outside of its executions
 * @param forgotten receives reports of senders and leases that the backend has forgotten
 */
public record ExecutionTraits(
        String backend,
        AcceptedMemory accepted,
        boolean shortExecutions,
        boolean blocksDevice,
        int maxDeferred,
        boolean lastingThreads,
        BackendCallbacks callbacks,
        PluginHandles.Report forgotten) {
    /** The traits of a backend that declares none. */
    public static final ExecutionTraits DEFAULT = new ExecutionTraits("", false, false);

    /** Creates the traits of a backend with executions that block no device. Its actions run on virtual threads. */
    public ExecutionTraits(String backend, boolean clientMemory, boolean shortExecutions) {
        this(backend, new AcceptedMemory(clientMemory, AcceptedMemory.HOST.places()), shortExecutions, false);
    }

    /** Creates the traits of a backend with actions that run on virtual threads. */
    public ExecutionTraits(String backend, AcceptedMemory accepted, boolean shortExecutions, boolean blocksDevice) {
        this(
                backend,
                accepted,
                shortExecutions,
                blocksDevice,
                BackendTraits.DEFAULT.maxDeferred(),
                BackendTraits.DEFAULT.lastingThreads(),
                ExecutionScope.DIRECT_CALLBACKS,
                PluginHandles.Report.NONE);
    }

    /** Returns the same traits with other callbacks. */
    public ExecutionTraits with(BackendCallbacks changed) {
        return new ExecutionTraits(
                backend, accepted, shortExecutions, blocksDevice, maxDeferred, lastingThreads, changed, forgotten);
    }

    /** Returns the same traits with another receiver of reports of forgotten senders and leases. */
    public ExecutionTraits with(PluginHandles.Report changed) {
        return new ExecutionTraits(
                backend, accepted, shortExecutions, blocksDevice, maxDeferred, lastingThreads, callbacks, changed);
    }

    /** Returns the same traits with another limit of an instance's deferred executions, at least 1. */
    public ExecutionTraits withMaxDeferred(int changed) {
        return new ExecutionTraits(
                backend, accepted, shortExecutions, blocksDevice, changed, lastingThreads, callbacks, forgotten);
    }

    /** Returns the same traits with threads that last as long as their instance, or may end. */
    public ExecutionTraits withLastingThreads(boolean changed) {
        return new ExecutionTraits(
                backend, accepted, shortExecutions, blocksDevice, maxDeferred, changed, callbacks, forgotten);
    }

    /** Returns the same traits for a model with one thread for each instance, even if executions block a device. */
    public ExecutionTraits withOwnThreads() {
        return new ExecutionTraits(
                backend, accepted, shortExecutions, false, maxDeferred, lastingThreads, callbacks, forgotten);
    }

    public ExecutionTraits {
        requireNonNull(backend, "backend");
        requireNonNull(accepted, "accepted");
        requireNonNull(callbacks, "callbacks");
        requireNonNull(forgotten, "forgotten");
        if (maxDeferred < 1) {
            throw new IllegalArgumentException("maxDeferred: " + maxDeferred + " (expected: >= 1)");
        }
    }

    /** Returns the same traits for a backend that accepts inputs in these kinds of memory. */
    public ExecutionTraits withPlaces(Set<MemoryPlace.Kind> kinds) {
        AcceptedMemory changed = new AcceptedMemory(accepted.ofClients(), kinds);
        return new ExecutionTraits(
                backend, changed, shortExecutions, blocksDevice, maxDeferred, lastingThreads, callbacks, forgotten);
    }
}
