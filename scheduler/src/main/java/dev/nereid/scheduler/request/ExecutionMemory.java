package dev.nereid.scheduler.request;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.InputStaging;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Holds the memory and instances that executions of a request use beyond its own inputs. Confined like the execution,
 * except for the lists that a sender of an earlier execution reads; owned by the request, which creates it only if
 * there is any of it: copies of inputs, added inputs, or a second execution.
 *
 * <p>Its size does not grow with the number of executions: an input is copied once as long as the copies stay, and an
 * instance is kept once.
 */
final class ExecutionMemory {
    /** An added input, and the memory in which it lies. */
    private record Held(Tensor tensor, ReferenceCountedMemory memory) {}

    private final List<NamedTensor> originals;

    /** The inputs with copies in place of the moved ones; {@code null} if there are no copies. */
    private InputStaging.@Nullable Staged copied;

    /** All inputs of the current execution; immutable. Read by any thread. */
    private volatile List<NamedTensor> inputs;

    /** The current execution's added inputs in memory that may be freed or changed; immutable. Read by any thread. */
    private volatile List<Held> held = List.of();

    /** The instances of earlier executions of which a response may be open, each once. */
    private final List<RequestDrain> earlier = new ArrayList<>(0);

    /** The sum of the waits before the current one. */
    private long waitedNanos;

    /** Creates the memory of a request, with the client's inputs, without copies and added inputs. */
    ExecutionMemory(List<NamedTensor> originals) {
        this.originals = originals;
        this.inputs = originals;
    }

    /**
     * Moves inputs to memory that the instance accepts. Inputs that were moved for an earlier execution, and are kept,
     * stay where they are.
     *
     * @throws dev.nereid.api.InferenceException as {@link InputStaging#stage}
     */
    void stage(InputStaging staging, boolean inPlace) {
        InputStaging.Staged before = copied;
        InputStaging.Staged made = staging.stage(before == null ? originals : before.inputs(), inPlace);
        InputStaging.Staged all = before == null ? made : made.after(before);
        copied = all;
        inputs = all.inputs();
    }

    /** Frees the copies, and releases the added inputs of the current execution, before the request ends. */
    void endCurrent() {
        releaseAdded();
        freeCopies();
    }

    private void freeCopies() {
        InputStaging.Staged freed = copied;
        if (freed != null) {
            copied = null;
            inputs = originals;
            freed.close();
        }
    }

    /** Adds inputs for the current execution, in place of inputs of the same name, and retains their memory. */
    void add(Executable execution) {
        releaseAdded(); // of an execution that a failure kept from its backend
        List<NamedTensor> added = execution.added();
        List<NamedTensor> before = copied == null ? originals : copied.inputs();
        List<NamedTensor> all = new ArrayList<>(before.size() + added.size());
        for (int i = 0; i < before.size(); i++) {
            NamedTensor input = before.get(i);
            if (NamedTensors.find(added, input.name()) == null) { // one that the client sent is replaced
                all.add(input);
            }
        }
        all.addAll(added);
        List<Held> retained = List.of();
        for (int i = 0; i < added.size(); i++) {
            ReferenceCountedMemory memory = execution.memory(i);
            if (memory != null) {
                retained = retained.isEmpty() ? new ArrayList<>(2) : retained;
                retained.add(new Held(added.get(i).tensor(), memory));
            }
        }
        inputs = all; // neither list is changed from here on
        held = retained;
        for (int i = 0; i < retained.size(); i++) {
            retained.get(i).memory.retain();
        }
    }

    /** Retains the memory of an added input in which an output lies; {@code null} for none. Called by any thread. */
    @Nullable
    ReferenceCountedMemory retainAdded(Tensor output) {
        List<Held> candidates = held;
        for (int i = 0; i < candidates.size(); i++) {
            Held candidate = candidates.get(i);
            if (MemoryRanges.overlap(candidate.tensor, output) && candidate.memory.tryRetain()) {
                return candidate.memory;
            }
        }
        return null;
    }

    /** Retains the memory of all added inputs of the current execution. Called by any thread. */
    List<ReferenceCountedMemory> retainAdded() {
        List<Held> candidates = held;
        List<ReferenceCountedMemory> retained = new ArrayList<>(candidates.size());
        for (int i = 0; i < candidates.size(); i++) {
            ReferenceCountedMemory memory = candidates.get(i).memory;
            if (memory.tryRetain()) { // it may belong to an execution that has ended meanwhile
                retained.add(memory);
            }
        }
        return retained;
    }

    /** Releases the memory of the added inputs. An output that lies in one holds its own reference. */
    private void releaseAdded() {
        List<Held> released = held;
        held = List.of();
        for (int i = 0; i < released.size(); i++) {
            released.get(i).memory.release();
        }
    }

    /** Returns the inputs as the backend sees them. Called by any thread. */
    List<NamedTensor> inputs() {
        return inputs;
    }

    long waitedNanos() {
        return waitedNanos;
    }

    /**
     * Ends an execution after which the request is rescheduled, and releases its added inputs. Copies and instance are
     * kept until {@link #endUnused}.
     *
     * @param instanceDrain counts the requests that use the instance of the execution; {@code null} for none
     * @param waited how long the request waited for the execution
     */
    void endExecution(@Nullable RequestDrain instanceDrain, long waited) {
        inputs = copied == null ? originals : copied.inputs();
        releaseAdded();
        waitedNanos += Math.max(0, waited);
        if (instanceDrain != null && earlier.contains(instanceDrain)) { // compared by identity
            instanceDrain.deregister();
        } else if (instanceDrain != null) {
            earlier.add(instanceDrain);
        }
    }

    /**
     * Ends the use of the instances of earlier executions, and frees the copies. Called while the request waits and no
     * response is open.
     *
     * @param keepsCopies whether threads of the backend may still read them
     */
    void endUnused(boolean keepsCopies) {
        if (!keepsCopies) {
            freeCopies();
        }
        endEarlier();
    }

    private void endEarlier() {
        for (int i = 0; i < earlier.size(); i++) {
            earlier.get(i).deregister();
        }
        earlier.clear();
    }

    /** Frees the copies, releases the added inputs, and ends the use of the instances of earlier executions. */
    void close() {
        endCurrent();
        endEarlier();
    }
}
