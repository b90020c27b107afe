package dev.nereid.server.response;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.spi.Tensor;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a response that a model holds. Safe for use by any thread.
 *
 * <p>It never refers to the object that the plugin has of the response, so that the server notices when the plugin has
 * forgotten that.
 */
public final class HeldResponse {
    private final ResponseHolder holder;
    private final ResponseHolders.OpenResponses open;
    private final String model;
    private final Object source;
    private final ResponseHolder.Sent request;
    private final ReentrantLock lock = new ReentrantLock();

    /** The response; {@code null} once it is closed. */
    @GuardedBy("lock")
    private @Nullable InferResponse response;

    /** Creates a holder's response, which it owns. */
    HeldResponse(
            ResponseHolder holder,
            InferResponse response,
            ResponseHolders.OpenResponses open,
            ResponseHolder.Sent request) {
        this.holder = holder;
        this.open = open;
        this.response = response;
        this.request = request;
        model = response.model();
        source = response.source();
        List<NamedTensor> outputs = response.outputs();
        for (int i = 0; i < outputs.size(); i++) {
            if (isKnown(outputs.get(i).tensor())) {
                open.add(this, i, outputs.get(i).tensor());
            }
        }
    }

    private static boolean isKnown(Tensor tensor) {
        return tensor.place().isHost() && tensor.byteSize() > 0;
    }

    String model() {
        return model;
    }

    /** Returns the load of a model version that responded, as of {@link InferResponse#source}. */
    Object source() {
        return source;
    }

    /** Returns its request, which may have several responses. */
    ResponseHolder.Sent request() {
        return request;
    }

    /** Returns where its request was sent; {@code null} if that was not recorded. */
    @Nullable
    Throwable place() {
        return request.place();
    }

    /** Leases an output until the plugin ends or forgets the lease; empty if the response is closed. */
    public Optional<HeldLease> hold(int output) {
        return lease(output).flatMap(lease -> holder.add(new HeldLease(holder, lease, model, source, request)));
    }

    /** Leases an output for the server; returns the end of the lease. Empty if the response is closed. */
    public Optional<Runnable> tryLease(int output) {
        return lease(output).map(lease -> lease::close);
    }

    private Optional<TensorLease> lease(int output) {
        lock.lock();
        try {
            InferResponse leased = response;
            return leased == null ? Optional.empty() : Optional.of(leased.lease(output));
        } finally {
            lock.unlock();
        }
    }

    /** Releases the outputs that are not on a lease. Later calls do nothing. */
    public void close() {
        release();
    }

    /**
     * Releases the response, since nothing reaches it any more. Does nothing if it was closed. Never blocks or runs
     * code of a plugin on the calling thread.
     */
    public void forgotten() {
        holder.forgotten(this);
    }

    /** Releases the outputs that are not on a lease; returns whether this is the first call. */
    boolean release() {
        return release(() -> {});
    }

    /**
     * Runs an action, and then releases the outputs. A thread that sees the memory released sees the action's effects.
     */
    boolean release(Runnable before) {
        InferResponse closed = take();
        if (closed == null) {
            return false;
        }
        try {
            before.run();
        } finally {
            holder.remove(this);
            List<NamedTensor> outputs = closed.outputs();
            for (int i = 0; i < outputs.size(); i++) {
                if (isKnown(outputs.get(i).tensor())) {
                    open.remove(this, i, outputs.get(i).tensor());
                }
            }
            closed.close();
        }
        return true;
    }

    private @Nullable InferResponse take() {
        lock.lock();
        try {
            InferResponse taken = response;
            response = null;
            return taken;
        } finally {
            lock.unlock();
        }
    }

    /**
     * A lease on an output of a response that a model holds. Safe for use by any thread.
     *
     * <p>It never refers to the plugin's objects of the lease or of the response, so that the server notices when the
     * plugin has forgotten both.
     */
    public static final class HeldLease {
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
}
