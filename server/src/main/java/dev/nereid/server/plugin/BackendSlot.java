package dev.nereid.server.plugin;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Creates the backend of a provider on first use, once. Lock-free: the thread that puts a future into the empty
 * {@code current} creates the backend and completes that future, and all other threads wait for it. A failed future is
 * removed before it is completed, so that the next caller tries again.
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

    /** Returns the backend, which is created on first use. Blocks while it is being created. */
    Backend backend() throws BackendException {
        CompletableFuture<Backend> own = new CompletableFuture<>();
        CompletableFuture<Backend> other = current.compareAndExchange(null, own);
        return other == null ? create(own) : await(other);
    }

    /** Returns an executor whose tasks run with the context class loader of the plugin. */
    Executor executor(Executor threads) {
        return entry.executor(threads);
    }

    BackendStatus status() {
        String reason = entry.unavailable().orElse("");
        BackendStatus.State state = reason.isEmpty() ? BackendStatus.State.AVAILABLE : BackendStatus.State.UNAVAILABLE;
        return new BackendStatus(entry.name(), plugin.name(), state, reason);
    }

    /** Closes the backend if there is one. Called once, after the last use. */
    void close() {
        CompletableFuture<Backend> created = current.getAndSet(null);
        if (created != null && created.isDone() && !created.isCompletedExceptionally()) {
            created.resultNow().close();
        }
    }

    private Backend create(CompletableFuture<Backend> own) throws BackendException {
        try {
            Backend created = create();
            own.complete(created);
            return created;
        } catch (BackendException e) {
            current.compareAndSet(own, null);
            own.completeExceptionally(e);
            throw e;
        } finally {
            if (!own.isDone()) { // an Error of the virtual machine is on its way to the caller
                current.compareAndSet(own, null);
                own.cancel(false);
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

    private Backend await(CompletableFuture<Backend> other) throws BackendException {
        try {
            return other.get();
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
