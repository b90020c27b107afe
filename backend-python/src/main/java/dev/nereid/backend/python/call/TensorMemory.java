package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameTensor;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** The shared memory of one process, as model calls use it. Safe for use by any thread. */
public interface TensorMemory {
    /**
     * Allocates a slot of {@code size} bytes for an output that the process reads. Never blocks. Returns {@code null}
     * if there is no memory for it, so that the output is sent within the frame.
     */
    @Nullable
    Incoming allocate(long size);

    /**
     * Holds the slot that a tensor of a frame names.
     *
     * @param tensor a tensor in a segment other than 0
     * @param what the role of the tensor, for errors
     * @return the slot, to be released once
     * @throws FrameException if the process has no such segment, or the data does not lie in it
     */
    Held hold(FrameTensor tensor, String what);

    /** A slot for an output. The process owns it once a frame that names it was sent. Confined to one thread at a time. */
    interface Incoming {
        int segment();

        /** Returns where the slot begins in the segment, in bytes. */
        long offset();

        /** Returns the memory of the slot: at least as many bytes as were allocated. */
        MemorySegment data();

        /** Says that the output is written: called before the frame is sent. The memory is not used afterwards. */
        void written();

        /** Frees a slot that no frame has named. */
        void discard();
    }

    /** A slot that the process has filled. It may be written to at any time by the process. */
    interface Held {
        /** Returns the memory of the tensor, of exactly its size; valid until the release. */
        MemorySegment data();

        /** Gives the slot up. Called once, by any thread. */
        void release();
    }
}
