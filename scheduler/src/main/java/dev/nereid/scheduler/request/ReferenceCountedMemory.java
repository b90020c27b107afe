package dev.nereid.scheduler.request;

import dev.nereid.api.memory.TensorBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reference-counted memory, freed by the last release. Lock-free; safe for use by any thread.
 *
 * <p>The count starts at one for whoever made it and only rises while somebody holds it, so it reaches zero once. A
 * batch and all responses with a slice of one of its outputs are users of the same memory.
 */
public final class ReferenceCountedMemory {
    private static final Logger LOG = LoggerFactory.getLogger(ReferenceCountedMemory.class);

    private final Runnable onRelease;
    private final @Nullable ReferenceCountedMemory parent;
    private final AtomicInteger references = new AtomicInteger(1);

    private ReferenceCountedMemory(Runnable giveBack, @Nullable ReferenceCountedMemory under) {
        this.onRelease = giveBack;
        this.parent = under;
    }

    /** Takes over a buffer, with its maker as the only user. */
    public static ReferenceCountedMemory of(TensorBuffer buffer) {
        return new ReferenceCountedMemory(buffer::close, null);
    }

    /**
     * Takes over memory of a backend, with its maker as the only user.
     *
     * @param giveBack run when the last user is done
     * @param under other memory that this is a part of and that must last as long, whose use is taken over, or
     *     {@code null}
     */
    public static ReferenceCountedMemory of(Runnable giveBack, @Nullable ReferenceCountedMemory under) {
        return new ReferenceCountedMemory(giveBack, under);
    }

    /** Adds a user; to be called by a user only. */
    public void retain() {
        references.incrementAndGet();
    }

    /** Takes a user away, and with the last one gives the memory back. What that throws is logged. */
    public void release() {
        if (references.decrementAndGet() > 0) {
            return;
        }
        try {
            onRelease.run();
        } catch (Throwable e) {
            LOG.atError().setCause(e).log("release of output memory failed");
        }
        if (parent != null) {
            parent.release();
        }
    }
}
