package dev.nereid.backend.python.memory;

import dev.nereid.backend.python.posix.MemoryCalls;
import dev.nereid.backend.python.posix.PosixException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;

/** A file in memory of a fixed size, mapped into this process. Safe for use by any thread. */
final class SegmentFile {
    private static final String NAME = "nereid-tensors";
    private static final int CLOSED = -1;

    private final MemorySegment memory;
    private final AtomicInteger descriptor;

    private SegmentFile(MemorySegment memory, int descriptor) {
        this.memory = memory;
        this.descriptor = new AtomicInteger(descriptor);
    }

    /** Creates and maps a file; fails if the system has no memory or no descriptor for it. */
    static SegmentFile create(long byteSize) throws PosixException {
        int descriptor = MemoryCalls.create(NAME);
        try {
            MemoryCalls.resize(descriptor, byteSize);
            MemoryCalls.seal(descriptor);
            return new SegmentFile(MemoryCalls.map(descriptor, byteSize), descriptor);
        } catch (PosixException | RuntimeException | Error e) {
            try {
                MemoryCalls.close(descriptor);
            } catch (PosixException suppressed) {
                e.addSuppressed(suppressed);
            }
            throw e;
        }
    }

    /** Returns the whole memory, valid until {@link #unmap}. */
    MemorySegment memory() {
        return memory;
    }

    /** Returns the path by which another process of the same user opens the file, until {@link #close}. */
    String path(long processId) {
        return "/proc/" + processId + "/fd/" + descriptor.get();
    }

    /** Closes the descriptor, once. The memory stays mapped. */
    void close() throws PosixException {
        int open = descriptor.getAndSet(CLOSED);
        if (open != CLOSED) {
            MemoryCalls.close(open);
        }
    }

    /** Unmaps the memory. Called once, after the last access. */
    void unmap() throws PosixException {
        MemoryCalls.unmap(memory);
    }
}
