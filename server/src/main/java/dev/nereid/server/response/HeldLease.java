package dev.nereid.server.response;

import dev.nereid.api.TensorLease;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A lease on an output of a response that a model holds. Safe for use by any thread.
 *
 * <p>It never refers to the plugin's objects of the lease or of the response, so that the server notices when the
 * plugin has forgotten both.
 */
public final class HeldLease {
    private final ResponseHolder holder;
    private final TensorLease lease;
    private final String model;
    private final Object source;
    private final ResponseHolder.Sent request;
    private final AtomicBoolean ended = new AtomicBoolean();

    /**
     * The number of objects that the plugin can reach: the action that ends the lease, and the response or its tensors.
     */
    private final AtomicInteger reachable = new AtomicInteger(2);

    /** Creates a holder's lease on an output of a response, which it owns. */
    HeldLease(ResponseHolder holder, TensorLease lease, String model, Object source, ResponseHolder.Sent request) {
        this.holder = holder;
        this.lease = lease;
        this.model = model;
        this.source = source;
        this.request = request;
    }

    String model() {
        return model;
    }

    /** Returns the load of a model version that responded. */
    Object source() {
        return source;
    }

    ResponseHolder.Sent request() {
        return request;
    }

    /** Returns where the request was sent; {@code null} if that was not recorded. */
    @Nullable
    Throwable place() {
        return request.place();
    }

    /**
     * Records that the plugin cannot reach the action that ends the lease, or cannot reach the response and its
     * tensors. After both, the lease is ended. Never blocks or runs code of a plugin on the calling thread.
     */
    public void unreachable() {
        if (reachable.decrementAndGet() == 0) {
            holder.forgotten(this);
        }
    }

    /** Releases the output. Later calls do nothing. */
    public void end() {
        release(() -> {});
    }

    /**
     * Runs an action, and then releases the output, as {@link HeldResponse#release}; returns whether this is the first
     * call.
     */
    boolean release(Runnable before) {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        try {
            before.run();
        } finally {
            holder.remove(this);
            lease.close();
        }
        return true;
    }
}
