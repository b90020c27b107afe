package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Properties of a backend: instance creation and execution. Immutable; every property has a default that is right for
 * most.
 *
 * @since 1.0
 */
public final class BackendTraits {
    /** Execution kinds: long, short or blocking the device. Open: later versions may add constants. */
    public enum Execution {
        /**
         * Executions compute or wait for a noticeable time. Each instance has a separate thread: every
         * {@link ModelInstance#execute} and the {@link ModelInstance#close} run on it. It may end while there is no
         * work, and another one follows, unless {@link #withLastingThreads()} says otherwise.
         */
        LONG,
        /**
         * Executions take microseconds and never block. An idle instance may be run by any thread that submits a
         * request, one thread at a time, never from within itself, with a happens-before edge from each execution to
         * the next; {@link ModelInstance#close} runs on the instance's own thread. The first dozens of executions
         * of each model run there too, and have to take less than a millisecond. A model with executions that take
         * longer runs on its own threads until thousands of them were short, and one that is decoupled always does.
         */
        SHORT,
        /** Executions block the device. As {@link #LONG}, but all instances on one GPU share one thread. */
        DEVICE_BLOCKING
    }

    /** The default instance group of a backend. Immutable. */
    public static final class PreferredGroup {
        private final Device.Kind kind;
        private final int count;

        private PreferredGroup(Device.Kind kind, int count) {
            this.kind = requireNonNull(kind, "kind");
            this.count = count;
        }

        /**
         * Describes a group.
         *
         * @param kind the kind of device
         * @param count the number of instances on each device, at least 1
         * @return the group
         */
        public static PreferredGroup of(Device.Kind kind, int count) {
            if (count < 1) {
                throw new IllegalArgumentException("count: " + count + " (expected: >= 1)");
            }
            return new PreferredGroup(kind, count);
        }

        /**
         * Returns the kind of device of the instances.
         *
         * @return the kind of device
         */
        public Device.Kind kind() {
            return kind;
        }

        /**
         * Returns the number of instances on each device.
         *
         * @return at least 1
         */
        public int count() {
            return count;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof PreferredGroup group && kind == group.kind && count == group.count;
        }

        @Override
        public int hashCode() {
            return Objects.hash(kind, count);
        }

        @Override
        public String toString() {
            return count + " on " + kind;
        }
    }

    /** Long executions, 16 deferred ones, no preferred groups, instances created one by one, host memory. */
    public static final BackendTraits DEFAULT = new BackendTraits();

    private final Execution execution;
    private final List<PreferredGroup> preferredGroups;
    private final boolean parallelInstances;
    private final boolean clientMemory;
    private final Set<MemoryPlace.Kind> places;
    private final int maxDeferred;
    private final boolean lastingThreads;

    private BackendTraits() {
        this(
                Execution.LONG,
                List.of(),
                false,
                false,
                EnumSet.of(MemoryPlace.Kind.HOST, MemoryPlace.Kind.PINNED),
                16,
                false);
    }

    private BackendTraits(
            Execution execution,
            List<PreferredGroup> preferredGroups,
            boolean parallelInstances,
            boolean clientMemory,
            Set<MemoryPlace.Kind> places,
            int maxDeferred,
            boolean lastingThreads) {
        this.execution = requireNonNull(execution, "execution");
        this.preferredGroups = List.copyOf(preferredGroups);
        this.parallelInstances = parallelInstances;
        this.clientMemory = clientMemory;
        this.places = Collections.unmodifiableSet(EnumSet.copyOf(places)); // in the order of the constants
        this.maxDeferred = maxDeferred;
        this.lastingThreads = lastingThreads;
    }

    /**
     * Returns the same traits with another kind of execution.
     *
     * @param changed the kind of execution
     * @return the changed traits
     */
    public BackendTraits withExecution(Execution changed) {
        return new BackendTraits(
                changed, preferredGroups, parallelInstances, clientMemory, places, maxDeferred, lastingThreads);
    }

    /**
     * Returns the same traits with other preferred groups. If all of them are on the CPU, groups of instances with an
     * open kind in the configuration ({@code KIND_AUTO}) run there too, whatever the machine has.
     *
     * @param groups the groups, best first; the first of a kind that the machine has is used
     * @return the changed traits
     */
    public BackendTraits withPreferredGroups(PreferredGroup... groups) {
        return new BackendTraits(
                execution, List.of(groups), parallelInstances, clientMemory, places, maxDeferred, lastingThreads);
    }

    /**
     * Returns the same traits with instances that may be created at the same time.
     *
     * @return the changed traits
     */
    public BackendTraits withParallelInstances() {
        return new BackendTraits(execution, preferredGroups, true, clientMemory, places, maxDeferred, lastingThreads);
    }

    /**
     * Returns the same traits for a backend that works in memory of clients. Such memory may change at any time, or
     * become inaccessible: then Java code that accesses it gets an {@link InternalError}, which the backend lets pass,
     * and native code crashes the process. So this is for backends that access inputs and outputs by Java code alone
     * and trust nothing that it reads. Other backends get copies.
     *
     * @return the changed traits
     */
    public BackendTraits withClientMemory() {
        return new BackendTraits(
                execution, preferredGroups, parallelInstances, true, places, maxDeferred, lastingThreads);
    }

    /**
     * Returns the same traits for a backend that accepts inputs outside the host. The server moves inputs that lie
     * elsewhere.
     *
     * @param kinds the kinds of memory, in place of earlier ones; they always include kinds of the host. Of devices,
     *     only memory of the instance's device is passed
     * @return the changed traits
     */
    public BackendTraits withPlaces(MemoryPlace.Kind... kinds) {
        Set<MemoryPlace.Kind> changed = EnumSet.copyOf(DEFAULT.places);
        changed.addAll(List.of(kinds));
        return new BackendTraits(
                execution, preferredGroups, parallelInstances, clientMemory, changed, maxDeferred, lastingThreads);
    }

    /**
     * Returns the same traits with a limit on deferred executions. An instance with as many open ones gets its next
     * batch when one of them has ended. Requests with a {@linkplain InferenceRequest#sender() sender} do not count when
     * their execution is finished: the limits of the load bound them, as they bound waiting requests.
     *
     * @param limit the largest number of {@linkplain Batch#defer deferred} executions of one instance, at least 1
     * @return the changed traits
     */
    public BackendTraits withMaxDeferred(int limit) {
        if (limit < 1) {
            throw new IllegalArgumentException("limit: " + limit + " (expected: >= 1)");
        }
        return new BackendTraits(
                execution, preferredGroups, parallelInstances, clientMemory, places, limit, lastingThreads);
    }

    /**
     * Returns the same traits with threads that last as long as their instances. For a backend that binds something to the
     * thread of an instance, such as a native context: all executions of an instance, and its close, run on one thread.
     * Otherwise a thread ends when there was no work for it for a minute, and another one runs the next execution.
     *
     * @return the changed traits
     */
    public BackendTraits withLastingThreads() {
        return new BackendTraits(
                execution, preferredGroups, parallelInstances, clientMemory, places, maxDeferred, true);
    }

    /**
     * Returns the kind of execution: how long executions hold the thread that runs them.
     *
     * @return {@link Execution#LONG} by default
     */
    public Execution execution() {
        return execution;
    }

    /**
     * Returns the groups of instances that the backend prefers when a configuration names none.
     *
     * @return the groups, best first; empty by default
     */
    public List<PreferredGroup> preferredGroups() {
        return preferredGroups;
    }

    /**
     * Says whether {@link Model#newInstance} may be called by several threads at once.
     *
     * @return {@code false} by default
     */
    public boolean parallelInstances() {
        return parallelInstances;
    }

    /**
     * Says whether inputs and outputs may lie in memory of clients.
     *
     * @return {@code false} by default
     */
    public boolean clientMemory() {
        return clientMemory;
    }

    /**
     * Returns the kinds of memory in which inputs may lie.
     *
     * @return the kinds, by default of the host: {@link MemoryPlace.Kind#HOST} and {@code PINNED}; immutable
     */
    public Set<MemoryPlace.Kind> places() {
        return places;
    }

    /**
     * Returns the largest number of deferred executions of one instance.
     *
     * @return 16 by default
     */
    public int maxDeferred() {
        return maxDeferred;
    }

    /**
     * Says whether the thread of an instance lasts as long as the instance.
     *
     * @return {@code false} by default
     */
    public boolean lastingThreads() {
        return lastingThreads;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof BackendTraits traits
                && execution == traits.execution
                && preferredGroups.equals(traits.preferredGroups)
                && parallelInstances == traits.parallelInstances
                && clientMemory == traits.clientMemory
                && places.equals(traits.places)
                && maxDeferred == traits.maxDeferred
                && lastingThreads == traits.lastingThreads;
    }

    @Override
    public int hashCode() {
        return Objects.hash(
                execution, preferredGroups, parallelInstances, clientMemory, places, maxDeferred, lastingThreads);
    }

    /** Returns the traits in one line, for logs. */
    @Override
    public String toString() {
        return execution + " executions, " + maxDeferred + " deferred, groups " + preferredGroups + ", places " + places
                + (parallelInstances ? ", parallel instances" : "")
                + (clientMemory ? ", client memory" : "")
                + (lastingThreads ? ", lasting threads" : "");
    }
}
