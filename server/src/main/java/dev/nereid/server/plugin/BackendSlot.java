package dev.nereid.server.plugin;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Creates the backend of a provider on first use, once. Lock-free: whoever puts a future into the empty {@code
 * current} makes the backend and completes that future, and everybody else waits for it. A failed future is taken out
 * before it is completed, so that the next caller tries again.
 */
final class BackendSlot {
    private final IsolatedBackendProvider entry;
    private final PluginSource plugin;
    private final PluginEnvironment environment;
    private final AtomicReference<@Nullable CompletableFuture<Backend>> current = new AtomicReference<>();

    BackendSlot(IsolatedBackendProvider entry, PluginSource plugin, PluginEnvironment environment) {
        this.entry = entry;
        this.plugin = plugin;
        this.environment = environment;
    }

    /** Returns the backend, made if need be. Blocks while it is being made. */
    Backend backend() throws BackendException {
        CompletableFuture<Backend> mine = new CompletableFuture<>();
        CompletableFuture<Backend> theirs = current.compareAndExchange(null, mine);
        return theirs == null ? create(mine) : await(theirs);
    }

    BackendStatus status() {
        String reason = entry.unavailable().orElse("");
        BackendStatus.State state = reason.isEmpty() ? BackendStatus.State.AVAILABLE : BackendStatus.State.UNAVAILABLE;
        return new BackendStatus(entry.name(), plugin.name(), state, reason);
    }

    /** Closes the backend if there is one. Called once, when nobody uses or asks for it any more. */
    void close() {
        CompletableFuture<Backend> made = current.getAndSet(null);
        if (made != null && made.isDone() && !made.isCompletedExceptionally()) {
            made.resultNow().close();
        }
    }

    private Backend create(CompletableFuture<Backend> mine) throws BackendException {
        try {
            Backend made = create();
            mine.complete(made);
            return made;
        } catch (BackendException e) {
            current.compareAndSet(mine, null);
            mine.completeExceptionally(e);
            throw e;
        } finally {
            if (!mine.isDone()) { // an Error of the virtual machine is on its way to the caller
                current.compareAndSet(mine, null);
                mine.cancel(false);
            }
        }
    }

    private Backend create() throws BackendException {
        String reason = entry.unavailable().orElse("");
        if (!reason.isEmpty()) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE, "backend '" + entry.name() + "' is not available: " + reason);
        }
        return entry.create(new PluginBackendContext(entry.name(), plugin, environment));
    }

    private Backend await(CompletableFuture<Backend> theirs) throws BackendException {
        try {
            return theirs.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof BackendException cause) {
                throw new BackendException(cause.code(), String.valueOf(cause.getMessage()), cause);
            }
            throw new IllegalStateException("a backend's creation fails with BackendException only", e);
        } catch (CancellationException e) {
            throw new BackendException(ErrorCode.INTERNAL, "backend '" + entry.name() + "' could not be created", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BackendException(
                    ErrorCode.CANCELLED, "interrupted while backend '" + entry.name() + "' was created", e);
        }
    }
}
