package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.memory.HeldSlot;
import dev.nereid.backend.python.memory.IncomingSlot;
import dev.nereid.backend.python.memory.SharedMemory;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The shared memory of a process, for its calls. */
public record SharedTensorMemory(SharedMemory memory) implements TensorMemory {
    @Override
    public @Nullable Incoming allocate(long size) {
        IncomingSlot slot = memory.allocate(size);
        return slot == null ? null : new SharedIncoming(slot);
    }

    @Override
    public Held hold(FrameTensor tensor, String what) {
        return new SharedHeld(memory.hold(tensor, what));
    }

    private record SharedIncoming(IncomingSlot slot) implements Incoming {
        @Override
        public int segment() {
            return slot.segment();
        }

        @Override
        public long offset() {
            return slot.offset();
        }

        @Override
        public MemorySegment data() {
            return slot.data();
        }

        @Override
        public void written() {
            slot.written();
        }

        @Override
        public void discard() {
            slot.discard();
        }
    }

    private record SharedHeld(HeldSlot slot) implements Held {
        @Override
        public MemorySegment data() {
            return slot.data();
        }

        @Override
        public void release() {
            slot.release();
        }
    }
}
