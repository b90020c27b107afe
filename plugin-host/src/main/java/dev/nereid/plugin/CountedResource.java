package dev.nereid.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * A resource that is opened for its first lease and closed after its last. Lock-free; safe for use by any thread.
 *
 * <p>One reference holds the state: closed, opening, open with a number of leases, closing. The thread that replaces
 * closed by opening opens the resource, and the one that replaces the last lease by closing closes it; both are foreign
 * code, which no lock surrounds. All other threads that want the resource wait until that is done, and then read the state
 * again. So the resource is never open twice, and never closed while it is leased. If it cannot be opened, each thread that
 * waited fails too, and the next one tries again.
 *
 * <p>A kept resource stays open without leases until {@link #end}.
 */
final class CountedResource<T> {
    /** Opens and closes the resource, one call at a time. */
    interface Lifecycle<T> {
        /** Opens the resource. Blocks. */
        T open();

        /** Closes the resource. Blocks. */
        void close(T resource);
    }

    private sealed interface State<T> {}

    private record Closed<T>() implements State<T> {}

    private record Opening<T>(CompletableFuture<Boolean> done) implements State<T> {}

    private record Open<T>(T resource, int leases) implements State<T> {}

    private record Closing<T>(CompletableFuture<Boolean> done) implements State<T> {}

    private final String name;
    private final Lifecycle<T> lifecycle;
    private final boolean kept;
    private final AtomicReference<State<T>> state = new AtomicReference<>(new Closed<>());
    private volatile boolean ended;

    /**
     * Creates a closed resource.
     *
     * @param name names it in messages
     * @param kept whether it stays open without leases
     */
    CountedResource(String name, Lifecycle<T> lifecycle, boolean kept) {
        this.name = name;
        this.lifecycle = lifecycle;
        this.kept = kept;
    }

    /**
     * Acquires the resource, and opens it if it is closed. Blocks meanwhile, as long as the foreign code does.
     *
     * @throws BackendException if it cannot be opened, was ended, or if the thread is interrupted
     */
    Lease<T> acquire() {
        while (true) {
            if (ended) {
                throw new BackendException(ErrorCode.UNAVAILABLE, name + " is closed, since the server stops");
            }
            State<T> now = state.get();
            switch (now) {
                case Closed<T> _ -> {
                    Opening<T> opening = new Opening<>(new CompletableFuture<>());
                    if (state.compareAndSet(now, opening)) {
                        return open(opening);
                    }
                }
                case Open<T>(T resource, int leases) -> {
                    if (state.compareAndSet(now, new Open<>(resource, leases + 1))) {
                        return new Lease<>(this, resource);
                    }
                }
                case Opening<T>(CompletableFuture<Boolean> done) -> await(done);
                case Closing<T>(CompletableFuture<Boolean> done) -> await(done);
            }
        }
    }

    /** Ends the resource: it is closed after its last lease, now if it has none, and cannot be acquired any more. */
    void end() {
        ended = true;
        closeIdle();
    }

    private Lease<T> open(Opening<T> opening) {
        State<T> next = new Closed<>();
        try {
            T resource = lifecycle.open();
            next = new Open<>(resource, 1);
            return new Lease<>(this, resource);
        } catch (BackendException e) {
            state.set(next);
            opening.done().completeExceptionally(e);
            throw e;
        } finally {
            if (!opening.done().isDone()) {
                state.set(next);
                if (next instanceof Open) {
                    opening.done().complete(true);
                } else { // an Error of the virtual machine is on its way to the caller
                    opening.done().cancel(false);
                }
            }
        }
    }

    private void release() {
        while (state.get() instanceof Open<T> now) {
            if (now.leases() == 1 && (!kept || ended)) {
                if (close(now)) {
                    return;
                }
            } else if (state.compareAndSet(now, new Open<>(now.resource(), now.leases() - 1))) {
                if (ended) { // perhaps since then: end saw a lease, and left the resource open
                    closeIdle();
                }
                return;
            }
        }
    }

    /** Adds a lease to an open resource, which has one. */
    private Lease<T> share() {
        while (state.get() instanceof Open<T> now) {
            if (state.compareAndSet(now, new Open<>(now.resource(), now.leases() + 1))) {
                return new Lease<>(this, now.resource());
            }
        }
        throw new IllegalStateException(name + ": closed (expected: open, while it is leased)");
    }

    private void closeIdle() {
        while (state.get() instanceof Open<T> now && now.leases() == 0) {
            if (close(now)) {
                return;
            }
        }
    }

    /** Closes the resource if the state is still the given one, and returns whether it was. */
    private boolean close(Open<T> now) {
        Closing<T> closing = new Closing<>(new CompletableFuture<>());
        if (!state.compareAndSet(now, closing)) {
            return false;
        }
        try {
            lifecycle.close(now.resource());
        } finally {
            state.set(new Closed<>());
            closing.done().complete(true);
        }
        return true;
    }

    private void await(CompletableFuture<Boolean> done) {
        try {
            done.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof BackendException cause) {
                throw new BackendException(cause.code(), String.valueOf(cause.getMessage()), cause);
            }
            throw new IllegalStateException("an opening fails with BackendException only", e);
        } catch (CancellationException e) {
            throw new BackendException(ErrorCode.INTERNAL, name + " could not be created", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BackendException(ErrorCode.CANCELLED, "interrupted while " + name + " was created or closed", e);
        }
    }

    /** One use of the resource. Safe for use by any thread; refers to nothing once closed. */
    static final class Lease<T> implements AutoCloseable {
        private final CountedResource<T> owner;
        private final AtomicReference<@Nullable T> resource;

        private Lease(CountedResource<T> owner, T resource) {
            this.owner = owner;
            this.resource = new AtomicReference<>(resource);
        }

        /** Returns the resource, which must not be used after the close. */
        T get() {
            T leased = resource.get();
            if (leased == null) {
                throw new IllegalStateException("lease of " + owner.name + ": closed (expected: open)");
            }
            return leased;
        }

        /** Returns the resource; empty after the close. */
        Optional<T> find() {
            return Optional.ofNullable(resource.get());
        }

        /** Returns another use of the resource. This one is open, and is closed by another thread after the call, if so. */
        Lease<T> share() {
            get();
            return owner.share();
        }

        /** Releases the resource. The last lease closes it, and blocks meanwhile. Later calls do nothing. */
        @Override
        public void close() {
            if (resource.getAndSet(null) != null) {
                owner.release();
            }
        }
    }
}
