package dev.nereid.scheduler.memory;

import dev.nereid.api.memory.TensorBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reference-counted memory, freed by the last release. Lock-free; safe for use by any thread.
 *
 * <p>The count starts at one, for the creator, and rises only while it is above zero, so it reaches zero once. A batch
 * and all responses with a slice of one of its outputs hold references to the same memory.
 */
public final class ReferenceCountedMemory {
    private static final Logger LOG = LoggerFactory.getLogger(ReferenceCountedMemory.class);

    private final Runnable onRelease;
    private final @Nullable ReferenceCountedMemory parent;
    private final AtomicInteger references = new AtomicInteger(1);

    private ReferenceCountedMemory(Runnable onRelease, @Nullable ReferenceCountedMemory parent) {
        this.onRelease = onRelease;
        this.parent = parent;
    }

    /** Takes ownership of a buffer. The caller holds the only reference. */
    public static ReferenceCountedMemory of(TensorBuffer buffer) {
        return new ReferenceCountedMemory(buffer::close, null);
    }

    /**
     * Takes ownership of memory of a backend. The caller holds the only reference.
     *
     * @param onRelease run by the last release
     * @param parent memory that contains this memory and must last as long; its reference is taken over. {@code null}
     *     for none
     */
    public static ReferenceCountedMemory of(Runnable onRelease, @Nullable ReferenceCountedMemory parent) {
        return new ReferenceCountedMemory(onRelease, parent);
    }

    /** Adds a reference; the caller holds one. */
    public void retain() {
        references.incrementAndGet();
    }

    /** Adds a reference; returns {@code false} if none was left. Called by any thread. */
    public boolean tryRetain() {
        int count = references.get();
        while (count > 0 && !references.compareAndSet(count, count + 1)) {
            count = references.get();
        }
        return count > 0;
    }

    /** Releases a reference; the last release frees the memory. Errors of that are logged. */
    public void release() {
        if (references.decrementAndGet() > 0) {
            return;
        }
        try {
            onRelease.run();
        } catch (Throwable e) { // of the release action of a backend
            LOG.atError().setCause(e).log("release of output memory failed");
        }
        if (parent != null) {
            parent.release();
        }
    }
}
