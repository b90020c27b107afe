package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Shared memory of a process: one outgoing segment, and slots that are counted. Safe for use by any thread. */
final class FakeTensorMemory implements TensorMemory {
    static final int OUTGOING = 1;
    static final int INCOMING = 2;

    /** The outgoing segment. */
    final MemorySegment outgoing = Arena.ofAuto().allocate(1 << 16);

    /** Slots that a call holds. */
    final AtomicInteger held = new AtomicInteger();

    /** How often a slot was held. */
    final AtomicInteger holds = new AtomicInteger();

    /** The offsets of slots that were allocated, and neither named nor discarded. */
    final Set<Long> allocated = ConcurrentHashMap.newKeySet();

    /** How many slots may be allocated. */
    final AtomicInteger slotsLeft = new AtomicInteger(Integer.MAX_VALUE);

    final ConcurrentHashMap<Long, MemorySegment> slots = new ConcurrentHashMap<>();
    private final AtomicLong next = new AtomicLong();

    @Override
    public @Nullable Incoming allocate(long size) {
        if (slotsLeft.getAndDecrement() <= 0) {
            return null;
        }
        long offset = next.getAndAdd(4096);
        MemorySegment data = Arena.ofAuto().allocate(size + 64);
        allocated.add(offset);
        slots.put(offset, data);
        return new Incoming() {
            @Override
            public int segment() {
                return INCOMING;
            }

            @Override
            public long offset() {
                return offset;
            }

            @Override
            public MemorySegment data() {
                return data;
            }

            @Override
            public void written() {}

            @Override
            public void discard() {
                if (!allocated.remove(offset)) {
                    throw new AssertionError("slot at " + offset + ": discarded twice, or after it was named");
                }
            }
        };
    }

    /** Notes that a frame named a slot. */
    void named(long offset) {
        if (!allocated.remove(offset)) {
            throw new AssertionError("slot at " + offset + ": named twice, or after it was discarded");
        }
    }

    @Override
    public Held hold(FrameTensor tensor, String what) {
        if (tensor.segment() != OUTGOING
                || tensor.offset() < 0
                || tensor.offset() > outgoing.byteSize() - tensor.size()) {
            throw new FrameException(what + ": segment " + tensor.segment() + " (expected: one of the process)");
        }
        held.incrementAndGet();
        holds.incrementAndGet();
        MemorySegment data = outgoing.asSlice(tensor.offset(), tensor.size());
        return new Held() {
            private boolean released;

            @Override
            public MemorySegment data() {
                return data;
            }

            @Override
            public void release() {
                if (released) {
                    throw new AssertionError("slot: released twice");
                }
                released = true;
                held.decrementAndGet();
            }
        };
    }
}
