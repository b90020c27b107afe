package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.ZeroMemory;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.NullRequest;
import dev.nereid.scheduler.request.RequestDrain;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A source of batches for one instance, with a slot for each sequence: how far {@link WorkSource} carries such a source
 * is what it is for. Guarded by its lock.
 *
 * <p>A request gets the control input {@code READY} and the present state {@code SUM}; its new state is that of
 * {@code NEXT_SUM}. A slot without a request has a null request in each batch. The next request of a sequence is taken
 * when the one before is released.
 */
public final class BoundSource implements WorkSource {
    public static final StateSpec NEXT_SUM = StateSpec.of("SUM", "NEXT_SUM", DataType.FP32, Shape.of(1));

    /** A state that is dropped. */
    static final StateSpec TEXT = StateSpec.of("TEXT_IN", "TEXT", DataType.BYTES, Shape.of(1));

    private static final Tensor READY = ofFloat(1);
    private static final Tensor NOT_READY = ofFloat(0);
    private static final Tensor ZERO = ofFloat(0);

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final ModelScope uncounted;
    private final ZeroMemory zeros = new ZeroMemory(new LeakCheckingMemory());

    @GuardedBy("lock")
    private final Map<Sequence.Id, Slot> slots = new LinkedHashMap<>();

    @GuardedBy("lock")
    private boolean stopped;

    /** The instance, while it has no thread and none is being started. */
    @GuardedBy("lock")
    private @Nullable InstanceHandle unstarted;

    /** {@code true} if there is no memory for the position of a request. */
    boolean failing;

    /** {@code true} if the next end of an execution throws, which it must not. */
    boolean failingOnce;

    public BoundSource(ModelScope model) {
        this.uncounted = model.uncounted(new RequestDrain());
    }

    private static Tensor ofFloat(float value) {
        MemorySegment data = Arena.global().allocate(Float.BYTES, 64);
        data.set(ValueLayout.JAVA_FLOAT, 0, value);
        return Tensor.of(DataType.FP32, Shape.of(1, 1), data.asReadOnly());
    }

    /** Adds a request to its sequence; returns whether that is accepted. */
    public boolean offer(ScheduledRequest request) {
        Sequence position = request.checked().options().sequence().orElseThrow();
        Runnable starter = null;
        lock.lock();
        try {
            Slot slot = slots.get(position.id());
            if (slot == null && stopped) {
                return false;
            }
            if (slot == null) {
                slot = new Slot();
                slots.put(position.id(), slot);
            }
            request.setPosition(slot.position(request));
            if (request.isWaiting()) {
                slot.waiting.add(request);
                changed.signalAll();
                starter = starter();
            }
        } finally {
            lock.unlock();
        }
        if (starter != null) {
            starter.run();
        }
        return true;
    }

    /** Returns what starts the thread of the instance; {@code null} if it has one, or one is being started. */
    @GuardedBy("lock")
    private @Nullable Runnable starter() {
        InstanceHandle starting = unstarted;
        unstarted = null;
        return starting == null ? null : starting.starter;
    }

    @Override
    public void addUnstarted(InstanceHandle handle, Runnable starter) {
        lock.lock();
        try {
            handle.starter = starter;
            unstarted = handle;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> startFailed(InstanceHandle handle) {
        lock.lock();
        try {
            unstarted = handle;
            List<ScheduledRequest> failed = waiting();
            slots.values().forEach(slot -> slot.waiting.clear());
            return failed;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void removeUnstarted(InstanceHandle handle) {
        lock.lock();
        try {
            unstarted = null;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the number of sequences. */
    public int sequences() {
        lock.lock();
        try {
            return slots.size();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public InstanceHandle register(Runnable directRun, LongSupplier load) {
        InstanceHandle handle = new InstanceHandle(directRun, load);
        handle.setRescheduler(new Rescheduler() {
            @Override
            public Rescheduler.Position newPosition(ScheduledRequest request) {
                if (failing) {
                    throw new OutOfMemoryError("for a test");
                }
                return slotOf(request).position(request);
            }

            @Override
            public void reschedule(int ended, List<ScheduledRequest> rescheduled) {
                rescheduled.forEach(request -> slotOf(request).reschedule(request));
                rescheduled.forEach(ScheduledRequest::checkQueued);
            }
        });
        return handle;
    }

    private Slot slotOf(ScheduledRequest request) {
        lock.lock();
        try {
            Slot slot = slots.get(
                    request.checked().options().sequence().orElseThrow().id());
            if (slot == null) {
                throw new IllegalStateException("sequence: none (expected: one)");
            }
            return slot;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean take(InstanceHandle handle) {
        lock.lock();
        try {
            while (!fill(handle)) {
                if (stopped && slots.isEmpty()) {
                    return false;
                }
                changed.awaitUninterruptibly();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean poll(InstanceHandle handle) {
        lock.lock();
        try {
            return fill(handle);
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean fill(InstanceHandle handle) {
        List<Executable> taken = new ArrayList<>();
        for (Slot slot : slots.values()) {
            Executable inputs = slot.take();
            if (inputs != null) {
                taken.add(inputs);
            }
        }
        if (taken.isEmpty()) {
            return false;
        }
        for (int empty = slots.size() - taken.size(); empty > 0; empty--) {
            handle.taken().add(nullRequest(taken.getFirst()));
        }
        handle.taken().addAll(taken);
        return true;
    }

    private NullRequest nullRequest(Executable like) {
        List<NamedTensor> added = List.of(new NamedTensor("READY", NOT_READY), new NamedTensor("SUM", ZERO));
        return new NullRequest(uncounted, like, added, zeros);
    }

    @Override
    public boolean awaitWork(InstanceHandle handle) {
        throw new UnsupportedOperationException("no rate limiter");
    }

    @Override
    public boolean hasWork(InstanceHandle handle) {
        lock.lock();
        try {
            return slots.values().stream().anyMatch(slot -> !slot.busy && !slot.waiting.isEmpty());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean finishDirectRun(InstanceHandle handle, boolean mayRun) {
        throw new UnsupportedOperationException("no direct execution");
    }

    @Override
    public void deferred(InstanceHandle handle) {}

    @Override
    public void deferredEnded(InstanceHandle handle) {}

    /** Takes no new sequences from now on. */
    @Override
    public boolean retire(InstanceHandle handle) {
        stop();
        return true;
    }

    /** Takes no new sequences from now on, and ends when those that it has have ended. */
    public void stop() {
        lock.lock();
        try {
            stopped = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Returns the waiting requests, which stay. */
    public List<ScheduledRequest> waiting() {
        lock.lock();
        try {
            List<ScheduledRequest> all = new ArrayList<>();
            slots.values().forEach(slot -> all.addAll(slot.waiting));
            return all;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void lose(InstanceHandle handle) {}

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle handle) {
        return waiting();
    }

    /** One sequence: its waiting requests, and its state. */
    private final class Slot implements StateSink {
        private final Deque<ScheduledRequest> waiting = new ArrayDeque<>();
        private Tensor sum = ZERO;
        private @Nullable ReferenceCountedMemory memory;

        /** {@code true} if a request is in execution, or about to come back. */
        private boolean busy;

        /** {@code true} if the last request of the sequence is in execution. */
        private boolean ending;

        NullRequest nullRequest(Executable like) {
            return BoundSource.this.nullRequest(like);
        }

        Rescheduler.Position position(ScheduledRequest request) {
            return () -> {
                lock.lock();
                try {
                    waiting.remove(request);
                } finally {
                    lock.unlock();
                }
            };
        }

        private @Nullable Executable take() {
            ScheduledRequest next = busy ? null : waiting.poll();
            while (next != null && !next.begin()) { // cancelled
                next = waiting.poll();
            }
            if (next == null) {
                return null;
            }
            busy = true;
            ending = next.checked().options().sequence().orElseThrow().end();
            List<NamedTensor> added = List.of(new NamedTensor("READY", READY), new NamedTensor("SUM", sum));
            return new Taken(this, next, added, memory);
        }

        private void reschedule(ScheduledRequest request) {
            lock.lock();
            try {
                busy = false;
                if (request.isWaiting()) {
                    waiting.addFirst(request);
                }
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }

        private void released(boolean rescheduled) {
            if (failingOnce) {
                failingOnce = false;
                throw new IllegalStateException("for a test");
            }
            if (rescheduled) {
                return;
            }
            lock.lock();
            try {
                busy = false;
                if (ending) {
                    slots.values().remove(this);
                    free();
                }
                changed.signalAll();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public @Nullable StateSpec state(String output) {
            return output.equals(TEXT.outputName()) ? TEXT : output.equals(NEXT_SUM.outputName()) ? NEXT_SUM : null;
        }

        @Override
        public void store(String output, Tensor value, ReferenceCountedMemory kept) {
            if (output.equals(TEXT.outputName())) {
                kept.release();
                return;
            }
            lock.lock();
            try {
                free();
                sum = value;
                memory = kept;
            } finally {
                lock.unlock();
            }
        }

        private void free() {
            if (memory != null) {
                memory.release();
                memory = null;
            }
        }
    }

    /** A request with its control input and its state. */
    private record Taken(
            Slot slot,
            ScheduledRequest request,
            List<NamedTensor> added,
            @Nullable ReferenceCountedMemory sum) implements Executable {
        @Override
        public @Nullable ReferenceCountedMemory memory(int index) {
            return index == 1 ? sum : null;
        }

        @Override
        public StateSink states() {
            return slot;
        }

        @Override
        public Executable inPlace(Executable like) {
            return slot.nullRequest(like);
        }

        @Override
        public @Nullable Runnable released(boolean rescheduled, @Nullable Runnable before) {
            slot.released(rescheduled);
            return before;
        }
    }
}
