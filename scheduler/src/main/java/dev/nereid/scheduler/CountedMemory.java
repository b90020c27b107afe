package dev.nereid.scheduler;

import dev.nereid.api.TensorBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Memory with a count of its users, given back by the last of them. Lock-free; safe for use by any thread.
 *
 * <p>The count starts at one for whoever made it and only rises while somebody holds it, so it reaches zero once. A
 * batch and all responses with a slice of one of its outputs are users of the same memory.
 */
final class CountedMemory {
    private static final Logger LOG = LoggerFactory.getLogger(CountedMemory.class);

    private final Runnable giveBack;
    private final @Nullable CountedMemory under;
    private final AtomicInteger users = new AtomicInteger(1);

    private CountedMemory(Runnable giveBack, @Nullable CountedMemory under) {
        this.giveBack = giveBack;
        this.under = under;
    }

    /** Takes over a buffer, with its maker as the only user. */
    static CountedMemory of(TensorBuffer buffer) {
        return new CountedMemory(buffer::close, null);
    }

    /**
     * Takes over memory of a backend, with its maker as the only user.
     *
     * @param giveBack run when the last user is done
     * @param under other memory that this is a part of and that must last as long, whose use is taken over, or
     *     {@code null}
     */
    static CountedMemory of(Runnable giveBack, @Nullable CountedMemory under) {
        return new CountedMemory(giveBack, under);
    }

    /** Adds a user; to be called by a user only. */
    void retain() {
        users.incrementAndGet();
    }

    /** Takes a user away, and with the last one gives the memory back. What that throws is logged. */
    void release() {
        if (users.decrementAndGet() > 0) {
            return;
        }
        try {
            giveBack.run();
        } catch (Throwable e) {
            LOG.atError().setCause(e).log("release of output memory failed");
        }
        if (under != null) {
            under.release();
        }
    }
}
