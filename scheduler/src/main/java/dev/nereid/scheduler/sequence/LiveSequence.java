package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.queue.Deadline;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A sequence, from its start to the end of its last execution. Guarded by the lock of the sequences.
 *
 * <p>It waits in the backlog, or has a slot of an instance. At most one of its requests is in execution.
 */
final class LiveSequence {
    /**
     * The id as a control input, and its memory.
     *
     * @param memory keeps it alive
     * @param between all controls of a request between the first and the last one; immutable
     */
    record IdTensor(Tensor tensor, ReferenceCountedMemory memory, List<NamedTensor> between) {}

    private final Sequence.Id id;
    private final @Nullable IdTensor idTensor;
    private final @Nullable SequenceStates states;
    private @Nullable SequenceEntry head;
    private @Nullable SequenceEntry tail;

    /** The instance; {@code null} in the backlog, and from the last request on. */
    @Nullable
    SequenceInstance instance;

    int slot;

    /** {@code true} while a request is in execution. */
    boolean busy;

    /**
     * The last request if its sender was open at the end of the execution, and at the last check after that: the
     * sequence is not idle until the sender ends. {@code null} otherwise.
     */
    @Nullable
    ScheduledRequest responding;

    /** {@code true} while the client of the first request does not read its responses: it is not executed then. */
    boolean paused;

    /** {@code true} if no request may follow the waiting ones. */
    boolean over;

    /** {@code true} if a request has begun. */
    boolean started;

    /** The reason why it ends; {@code null} while it goes on. */
    @Nullable
    SequenceEndReason reason;

    /** {@code true} if it has ended, and its memory is released. */
    boolean finished;

    /**
     * The time at which an idle sequence expires without a request; for a sequence with a request, the time since which
     * that could be taken.
     */
    long nanos;

    /** The expiry in the backlog; {@code null} for none. */
    @Nullable
    Deadline<Runnable> expiry;

    /** The list in which it is, and its neighbors there. It is in one list at most. */
    @Nullable
    Chain list;

    @Nullable
    LiveSequence previous;

    @Nullable
    LiveSequence next;

    /** Creates a sequence without requests, owner of the id's tensor. Unwanted ids and states are {@code null}. */
    LiveSequence(Sequence.Id id, @Nullable IdTensor idTensor, @Nullable SequenceStates states) {
        this.id = id;
        this.idTensor = idTensor;
        this.states = states;
    }

    @Nullable
    SequenceStates states() {
        return states;
    }

    /**
     * Returns whether the next requests of two sequences may share a batch, as far as their states are concerned.
     *
     * @param begun whether the request of the other sequence has begun: its states are the states of that request then
     */
    boolean joins(LiveSequence other, boolean begun) {
        SequenceStates own = states;
        SequenceStates others = other.states;
        return own == null || others == null || own.join(startsNext(), others, !begun && other.startsNext());
    }

    private boolean startsNext() {
        return head != null && head.starts();
    }

    Sequence.Id id() {
        return id;
    }

    @Nullable
    IdTensor idTensor() {
        return idTensor;
    }

    /** Returns the request that goes first; {@code null} if none waits. */
    @Nullable
    SequenceEntry head() {
        return head;
    }

    /** Returns the request that goes first. Called only if one waits. */
    SequenceEntry first() {
        SequenceEntry first = head;
        if (first == null) {
            throw new IllegalStateException("sequence: no request waits (expected: one)");
        }
        return first;
    }

    /**
     * Returns whether the last request, which was executed, had a sender that was open at the last call, or at the end of
     * the execution. So the first call after the end of the sender returns true.
     */
    boolean hasResponded() {
        ScheduledRequest last = responding;
        if (last != null && !last.delivery().isStreamOpen()) {
            responding = null;
        }
        return last != null;
    }

    /** Returns whether a request waits for its execution, and for nothing else. */
    boolean mayBegin() {
        return !busy && !paused && head != null;
    }

    /** Returns whether a request may begin now. */
    boolean isReady() {
        return mayBegin() && first().request().isWaiting();
    }

    void append(SequenceEntry entry) {
        entry.sequence = this;
        entry.home = this;
        if (tail == null) {
            head = entry;
        } else {
            tail.next = entry;
        }
        tail = entry;
    }

    /** Adds a request before all others. */
    void prepend(SequenceEntry entry) {
        entry.sequence = this;
        entry.next = head;
        if (tail == null) {
            tail = entry;
        }
        head = entry;
    }

    /** Removes and returns the request that goes first. */
    SequenceEntry poll() {
        SequenceEntry first = first();
        head = first.next;
        paused = false;
        if (head == null) {
            tail = null;
        }
        first.next = null;
        first.sequence = null;
        return first;
    }

    /** Removes a request that waits, and returns the one that was before it; {@code null} for none. */
    @Nullable
    SequenceEntry remove(SequenceEntry entry) {
        SequenceEntry before = null;
        SequenceEntry one = head;
        while (one != null && one != entry) {
            before = one;
            one = one.next;
        }
        if (one == null) {
            throw new IllegalStateException("sequence: the request does not wait (expected: it does)");
        }
        if (before == null) {
            poll();
        } else {
            before.next = entry.next;
            if (tail == entry) {
                tail = before;
            }
            entry.next = null;
            entry.sequence = null;
        }
        return before;
    }

    /**
     * Gives up the memory of the sequence, once. All sequences that end together give up their memory before any memory
     * is released. So no state is moved out of a buffer that another sequence is about to leave.
     *
     * @param release releases memory, which may run code of the backend
     */
    void release(Consumer<Runnable> release) {
        if (idTensor != null) {
            release.accept(idTensor.memory()::release);
        }
        if (states != null) {
            states.reset(release);
        }
    }

    /** A linked list of sequences, with the links in the sequences. Guarded by the lock of the sequences. */
    static final class Chain {
        private @Nullable LiveSequence first;
        private @Nullable LiveSequence last;
        private int size;

        @Nullable
        LiveSequence first() {
            return first;
        }

        int size() {
            return size;
        }

        /** Adds a sequence that is in no list, as the last one. */
        void add(LiveSequence sequence) {
            if (sequence.list != null) {
                throw new IllegalStateException("sequence: in another list (expected: in none)");
            }
            sequence.list = this;
            sequence.previous = last;
            if (last == null) {
                first = sequence;
            } else {
                last.next = sequence;
            }
            last = sequence;
            size++;
        }

        /** Removes a sequence, if it is in this list; returns whether it was. */
        boolean remove(LiveSequence sequence) {
            if (sequence.list != this) {
                return false;
            }
            if (sequence.previous == null) {
                first = sequence.next;
            } else {
                sequence.previous.next = sequence.next;
            }
            if (sequence.next == null) {
                last = sequence.previous;
            } else {
                sequence.next.previous = sequence.previous;
            }
            sequence.previous = null;
            sequence.next = null;
            sequence.list = null;
            size--;
            return true;
        }

        /** Removes and returns the first sequence. Called only if there is one. */
        LiveSequence poll() {
            LiveSequence polled = requireNonNull(first);
            remove(polled);
            return polled;
        }
    }
}
