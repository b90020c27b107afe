package dev.nereid.backend.python.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.posix.PosixException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The segments that the server shares with one process, and the slots in them. Guarded by one lock; safe for use by any thread.
 *
 * <p>No method blocks. The lock is never held while a segment is created or unmapped, or a frame is sent. A segment is sent
 * before a frame can name one of its slots: an incoming one gives slots to other threads only after its frame was sent. A slot
 * of an outgoing segment is free here before RELEASE is sent, since Python may name it again at once.
 *
 * <p>Memory stays mapped as long as code of the server writes or reads a tensor in it, whatever the process does: no frame
 * unmaps it earlier, and neither does {@link #close}. What a frame claims is checked against the state of the slot that it
 * names. The content of slots is not protected from the process, which may write to all of it at any time.
 *
 * <p>Frames of the process must come to this class in the order in which they were sent: {@link #hold} for the tensors of a
 * frame comes before {@link #onReleased} for a later one, which may end Python's use of the slot.
 */
public final class SharedMemory {
    private static final long SMALLEST_SEGMENT = 1 << 20;

    /** Segments of several slots grow with the memory in use, up to this size in bytes. */
    private static final long LARGEST_GROWTH = 64 << 20;

    /** A new segment adds one part of so many to the memory for its size of slots. */
    private static final int GROWTH = 4;

    private static final long IDLE_NANOS = Duration.ofSeconds(10).toNanos();

    private final FrameSink sink;
    private final MemoryBudget budget;
    private final System.Logger log;
    private final LongSupplier nanoTime;
    private final long processId = ProcessHandle.current().pid();
    private final ReleaseFrames releases;
    private final AtomicLong mapped = new AtomicLong();
    private final AtomicBoolean systemRefused = new AtomicBoolean();

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Map<Integer, Segment> segments = new HashMap<>();

    /** Incoming segments that give slots out, by the class of their slots' size. */
    @GuardedBy("lock")
    private final List<List<Segment>> incoming = new ArrayList<>(SlotSizes.CLASSES);

    @GuardedBy("lock")
    private int lastNumber;

    @GuardedBy("lock")
    private boolean closed;

    /** Creates the memory of a process, with a budget that is shared with other processes; no segment yet. */
    public SharedMemory(FrameSink sink, MemoryBudget budget, System.Logger log, LongSupplier nanoTime) {
        this.sink = sink;
        this.budget = budget;
        this.log = log;
        this.nanoTime = nanoTime;
        releases = new ReleaseFrames(sink);
        for (int i = 0; i < SlotSizes.CLASSES; i++) {
            incoming.add(new ArrayList<>(0));
        }
    }

    // Tensors for Python

    /**
     * Returns memory for a tensor of 1 byte or more that is sent to Python; sends SEGMENT first if there is no free
     * slot. The caller owns the slot; null if the budget is used up, the system refuses memory, or the process has
     * ended.
     */
    public @Nullable IncomingSlot allocate(long byteSize) {
        if (byteSize <= 0) {
            throw new IllegalArgumentException("byteSize: " + byteSize + " (expected: 1 or more)");
        }
        if (byteSize > SlotSizes.LARGEST) {
            return null;
        }
        long slotSize = SlotSizes.of(byteSize);
        int sizeClass = SlotSizes.classOf(slotSize);
        lock.lock();
        try {
            for (Segment segment : incoming.get(sizeClass)) {
                if (segment.hasFreeSlot()) {
                    return take(segment, byteSize);
                }
            }
        } finally {
            lock.unlock();
        }
        Segment segment = create(false, slotSize);
        if (segment == null) {
            return null;
        }
        IncomingSlot slot = new IncomingSlot(this, segment, Segment.FIRST_SLOT, Segment.FIRST_TURN, byteSize);
        sendSegment(segment);
        lock.lock();
        try {
            if (!closed) {
                incoming.get(sizeClass).add(segment);
            }
        } finally {
            lock.unlock();
        }
        return slot;
    }

    @GuardedBy("lock")
    private IncomingSlot take(Segment segment, long byteSize) {
        int index = segment.take();
        return new IncomingSlot(this, segment, index, segment.turn(index), byteSize);
    }

    void written(Segment segment, int index) {
        boolean last;
        lock.lock();
        try {
            segment.written(index);
            last = closed && !segment.isUsed();
        } finally {
            lock.unlock();
        }
        if (last) {
            unmap(segment);
        }
    }

    void discard(Segment segment, int index, int turn) {
        boolean last;
        lock.lock();
        try {
            boolean used = segment.isUsed();
            segment.discard(index, turn);
            last = closed && used && !segment.isUsed();
        } finally {
            lock.unlock();
        }
        if (last) {
            unmap(segment);
        }
    }

    /**
     * Ends Python's use of the slots that a frame RELEASED names, from its first slot on.
     *
     * @throws FrameException if the process does not have one of the slots; it must be ended
     */
    public void onReleased(FrameReader frame) {
        int count = frame.count();
        lock.lock();
        try {
            for (int i = 0; i < count; i++) {
                long number = frame.u32("segment of a released slot");
                frame.u32("padding of a released slot");
                long offset = frame.u64("offset of a released slot");
                if (!closed) {
                    Segment segment = segment("segment of a released slot", number);
                    if (segment.outgoing) {
                        throw new FrameException(
                                "segment of a released slot: " + number + " (expected: an incoming segment)");
                    }
                    segment.released(offset);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    // Tensors of Python

    /**
     * Creates an outgoing segment, and sends SEGMENT, or SEGMENT_REFUSED if the budget is used up or the system refuses memory.
     *
     * @param slotSize the id of SEGMENT_WANTED
     * @throws FrameException if slots do not have this size; the process must be ended
     */
    public void onSegmentWanted(long slotSize) {
        if (!SlotSizes.isSlotSize(slotSize)) {
            throw new FrameException("size of slots: " + Long.toUnsignedString(slotSize)
                    + " (expected: a power of two from 4096 to 2^46 or, above 2^20, one of three steps between two)");
        }
        Segment segment = create(true, slotSize);
        if (segment == null) {
            sink.send(new FrameWriter()
                    .begin(FrameType.SEGMENT_REFUSED, 0, 0, slotSize)
                    .end());
        } else {
            sendSegment(segment);
        }
    }

    /**
     * Removes the outgoing segment that Python has returned, by the id of SEGMENT_RETURNED.
     *
     * @throws FrameException if the process does not have this segment, or has named a slot that is not released yet;
     *     it must be ended
     */
    public void onSegmentReturned(long number) {
        Segment segment;
        lock.lock();
        try {
            if (closed) {
                return;
            }
            segment = segment("segment", number);
            if (!segment.outgoing || segment.isUsed()) {
                throw new FrameException("segment: " + number + " (expected: an outgoing one without a slot in use)");
            }
            segments.remove(segment.number);
        } finally {
            lock.unlock();
        }
        unmap(segment);
    }

    /**
     * Begins a use of a tensor that Python has named: an output, or an input of a call. An incoming slot may have any number of
     * uses.
     *
     * @param tensor the tensor, of a segment
     * @param what the role of the tensor, for errors, such as {@code output}
     * @return the tensor's data, owned by the caller
     * @throws FrameException if the tensor does not lie in a slot that Python may name; the process must be ended
     */
    public HeldSlot hold(FrameTensor tensor, String what) {
        lock.lock();
        try {
            if (closed) {
                throw new FrameException(what + ": segment " + tensor.segment() + " of a process that has ended");
            }
            Segment segment = segment(what, tensor.segment());
            int index = segment.hold(what, tensor.offset(), tensor.size());
            return new HeldSlot(this, segment, index, tensor.size());
        } finally {
            lock.unlock();
        }
    }

    void endHold(Segment segment, int index) {
        boolean release;
        boolean last;
        lock.lock();
        try {
            segment.endHold(index);
            release = segment.outgoing && !closed;
            last = closed && !segment.isUsed();
        } finally {
            lock.unlock();
        }
        if (release) {
            releases.send(segment.number, index * segment.slotSize);
        }
        if (last) {
            unmap(segment);
        }
    }

    @GuardedBy("lock")
    private Segment segment(String what, long number) {
        Segment segment = number == (int) number ? segments.get((int) number) : null;
        if (segment == null) {
            throw new FrameException(
                    what + ": segment " + Long.toUnsignedString(number) + " (expected: a segment of this process)");
        }
        return segment;
    }

    // Segments

    /** Returns the bytes that are mapped now: all segments, in use or not. */
    public long byteSize() {
        return mapped.get();
    }

    /**
     * Removes the incoming segments that have been idle for 10 s. Called every few seconds; the time of a segment begins with
     * the first call that finds it idle.
     */
    public void trim() {
        long now = nanoTime.getAsLong();
        List<Segment> removed = new ArrayList<>();
        lock.lock();
        try {
            for (Iterator<Segment> all = segments.values().iterator(); all.hasNext(); ) {
                Segment segment = all.next();
                if (segment.idleNanos(now) >= IDLE_NANOS) {
                    all.remove();
                    incoming.get(SlotSizes.classOf(segment.slotSize)).remove(segment);
                    removed.add(segment);
                }
            }
        } finally {
            lock.unlock();
        }
        removed.forEach(this::remove);
    }

    /**
     * Unmaps all segments: at once, or when the last tensor in one is not used any more. Called when the process, and all
     * processes that share its memory, have ended. After that {@link #allocate} returns null, and frames have no effect. Later
     * calls do nothing.
     */
    public void close() {
        List<Segment> unused = new ArrayList<>();
        List<Segment> used = new ArrayList<>();
        lock.lock();
        try {
            closed = true;
            for (Segment segment : segments.values()) {
                (segment.isUsed() ? used : unused).add(segment);
            }
            segments.clear();
            incoming.forEach(List::clear);
        } finally {
            lock.unlock();
        }
        used.forEach(this::closeFile);
        unused.forEach(this::unmap);
    }

    /**
     * Creates a segment within the budget; null if there is no memory, or the process has ended. The first slot of an incoming
     * one is taken: without a use the segment could be closed at any time.
     */
    private @Nullable Segment create(boolean outgoing, long slotSize) {
        long byteSize = reserve(outgoing, slotSize);
        if (byteSize == 0) {
            return null;
        }
        boolean created = false;
        try {
            SegmentFile file = SegmentFile.create(byteSize);
            mapped.addAndGet(byteSize);
            created = true;
            systemRefused.set(false);
            return add(outgoing, slotSize, file);
        } catch (PosixException e) {
            if (!systemRefused.getAndSet(true)) {
                log.log(System.Logger.Level.WARNING, "no shared memory of " + byteSize + " bytes", e);
            }
            return null;
        } finally {
            if (!created) {
                budget.free(byteSize);
            }
        }
    }

    private @Nullable Segment add(boolean outgoing, long slotSize, SegmentFile file) {
        Segment segment;
        lock.lock();
        try {
            int number = closed || lastNumber == Integer.MAX_VALUE ? 0 : ++lastNumber;
            segment = new Segment(number, outgoing, slotSize, file);
            if (number != 0) {
                segments.put(number, segment);
                if (!outgoing) {
                    segment.take();
                }
                return segment;
            }
        } finally {
            lock.unlock();
        }
        unmap(segment);
        return null;
    }

    /** Takes the bytes of a new segment from the budget; 0 if there are not enough. */
    private long reserve(boolean outgoing, long slotSize) {
        long present = 0;
        lock.lock();
        try {
            if (closed) {
                return 0;
            }
            for (Segment segment : segments.values()) {
                if (segment.outgoing == outgoing && segment.slotSize == slotSize) {
                    present += segment.byteSize;
                }
            }
        } finally {
            lock.unlock();
        }
        long least = Math.max(slotSize, SMALLEST_SEGMENT);
        long grown = Math.max(least, Math.min(present / GROWTH, LARGEST_GROWTH) / slotSize * slotSize);
        if (budget.reserve(grown)) {
            return grown;
        }
        while (!budget.reserve(least)) {
            if (!removeOne(least)) {
                return 0;
            }
        }
        return least;
    }

    /** Removes an incoming segment that is not in use; false if all of them together would not make room for a new one. */
    private boolean removeOne(long needed) {
        Segment removed = null;
        lock.lock();
        try {
            long removable = 0;
            for (Segment segment : segments.values()) {
                if (segment.isRemovable()) {
                    removable += segment.byteSize;
                    if (removed == null || segment.byteSize > removed.byteSize) {
                        removed = segment;
                    }
                }
            }
            if (removed == null || budget.used() - removable > budget.limit() - needed) {
                return false;
            }
            segments.remove(removed.number);
            incoming.get(SlotSizes.classOf(removed.slotSize)).remove(removed);
        } finally {
            lock.unlock();
        }
        remove(removed);
        return true;
    }

    private void remove(Segment segment) {
        sink.send(new FrameWriter()
                .begin(FrameType.SEGMENT_REMOVE, 0, 0, segment.number)
                .end());
        unmap(segment);
    }

    private void sendSegment(Segment segment) {
        sink.send(new FrameWriter()
                .begin(FrameType.SEGMENT, segment.outgoing ? 1 : 0, 0, segment.number)
                .u64(segment.byteSize)
                .u64(segment.outgoing ? segment.slotSize : 0)
                .text(segment.file.path(processId))
                .end());
    }

    private void unmap(Segment segment) {
        closeFile(segment);
        try {
            segment.file.unmap();
        } catch (PosixException e) {
            log.log(System.Logger.Level.WARNING, "shared memory not unmapped", e);
        }
        mapped.addAndGet(-segment.byteSize);
        budget.free(segment.byteSize);
    }

    private void closeFile(Segment segment) {
        try {
            segment.file.close();
        } catch (PosixException e) {
            log.log(System.Logger.Level.WARNING, "shared memory not closed", e);
        }
    }
}
