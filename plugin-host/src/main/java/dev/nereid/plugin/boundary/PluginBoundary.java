package dev.nereid.plugin.boundary;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Isolates one plugin: sets its context class loader and converts its exceptions. Immutable but for the threads that run
 * its tasks.
 *
 * <p>The only class that touches the context class loader. {@link #invoke} and {@link #close} turn whatever the plugin
 * throws into a {@link BackendException}, so that no plugin can bring down the thread that called it. Where exceptions
 * have to pass, or nothing may be allocated, {@link #enter} and {@link #exit} set the class loader alone.
 */
public final class PluginBoundary {
    /** Invokes a method of the plugin and returns its result. */
    public interface Invocation<T> {
        /** Calls; the result may be {@code null} although the SPI forbids it. */
        T run();
    }

    /** Invokes a method of the plugin that returns nothing. */
    public interface Action {
        void run();
    }

    /** Causes may go round in circles. */
    private static final int MAX_CAUSES = 6;

    /** A part of the message of the JVM. */
    private static final String OTHER_LOADER = "already loaded in another classloader";

    private static final String CURE =
            "; the JVM lets one class loader alone load a native library: add 'Nereid-Shared: NAME' to the manifest of the"
                    + " plugin (<nereid.shared>NAME</nereid.shared> in a pom.xml with nereid-backend-parent), with one NAME"
                    + " in all plugins with this library; if the plugin was loaded a second time, 'Nereid-Native: true'"
                    + " keeps its class loader";

    private static final Logger LOG = LoggerFactory.getLogger(PluginBoundary.class);

    private final String plugin;
    private final ClassLoader loader;

    /** The threads that run tasks of the plugin; virtual ones are in no list of the JVM. */
    private final Set<Thread> acting = ConcurrentHashMap.newKeySet();

    public PluginBoundary(String plugin, ClassLoader loader) {
        this.plugin = plugin;
        this.loader = loader;
    }

    /** Sets the plugin's context class loader on the calling thread; returns the one before, for {@link #exit}. */
    @Nullable
    public ClassLoader enter() {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        return before;
    }

    public String plugin() {
        return plugin;
    }

    public ClassLoader loader() {
        return loader;
    }

    /** Restores the context class loader that {@link #enter} returned. */
    public static void exit(@Nullable ClassLoader before) {
        Thread.currentThread().setContextClassLoader(before);
    }

    /**
     * Calls into the plugin.
     *
     * @param method the name of the method, for messages
     * @return its result, never {@code null}
     * @throws BackendException the plugin's exception, or {@link ErrorCode#INTERNAL} for anything that it must not
     *     throw
     */
    public <T> T invoke(String method, Invocation<T> invocation) {
        return invoke(method, invocation, true);
    }

    /**
     * Calls into the plugin as {@link #invoke(String, Invocation)} does.
     *
     * @param isLogged whether exceptions that the plugin must not throw are logged
     */
    @SuppressWarnings("NullAway") // A plugin is not compiled with our checks: it may return null.
    public <T> T invoke(String method, Invocation<T> invocation, boolean isLogged) {
        ClassLoader before = enter();
        try {
            T result = invocation.run();
            if (result == null) {
                throw new BackendException(ErrorCode.INTERNAL, where(method) + " returned null");
            }
            return result;
        } catch (BackendException e) {
            throw e.getCause() != null && describe(e).endsWith(CURE)
                    ? new BackendException(e.code(), e.getMessage() + CURE, e)
                    : e;
        } catch (VirtualMachineError e) {
            throw e;
        } catch (Throwable e) {
            if (isLogged) {
                LOG.atError()
                        .addKeyValue("plugin", plugin)
                        .setCause(e)
                        .log("plugin failed in {} (plugin '{}')", method, plugin);
            }
            throw new BackendException(ErrorCode.INTERNAL, where(method) + " failed: " + describe(e), e);
        } finally {
            exit(before);
        }
    }

    /**
     * Converts the failure of a stage of the plugin, as {@link #invoke} converts exceptions.
     *
     * @param method the name of the method that returned the stage, for messages
     */
    public BackendException translate(String method, Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        if (cause instanceof BackendException known) {
            return known;
        }
        LOG.atError()
                .addKeyValue("plugin", plugin)
                .setCause(cause)
                .log("plugin failed in {} (plugin '{}')", method, plugin);
        return new BackendException(ErrorCode.INTERNAL, where(method) + " failed: " + describe(cause), cause);
    }

    /**
     * Calls into the plugin where no caller could handle a failure.
     *
     * @param method the name of the method, for messages
     * @param otherwise supplies the result in place of a failure, which is logged
     */
    public <T> T invokeOrElse(String method, Invocation<T> invocation, Supplier<T> otherwise) {
        try {
            return invoke(method, invocation, false);
        } catch (BackendException e) {
            LOG.atError()
                    .addKeyValue("plugin", plugin)
                    .setCause(e)
                    .log("plugin failed in {} (plugin '{}')", method, plugin);
            return otherwise.get();
        }
    }

    /**
     * Calls a method of the plugin, and passes its exceptions to the caller.
     *
     * @param method the name of the method, for messages
     * @throws IllegalStateException in place of an error that the plugin must not throw, such as a class that it lacks;
     *     its exceptions pass
     */
    public <T> T call(String method, Supplier<T> invocation) {
        ClassLoader before = enter();
        try {
            return invocation.get();
        } catch (RuntimeException | VirtualMachineError e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(where(method) + " failed: " + describe(e), e);
        } finally {
            exit(before);
        }
    }

    /**
     * Returns a stage that runs its actions with the plugin's context class loader.
     *
     * @param stage the stage that completes it
     * @param unwanted receives a result that the plugin waits for no more
     */
    public <T> CompletionStage<T> stage(CompletionStage<T> stage, Consumer<T> unwanted) {
        CompletableFuture<T> isolated = new CompletableFuture<>();
        CompletionStage<T> _ = stage.whenComplete((result, failure) -> {
            ClassLoader before = enter();
            try {
                if (failure != null) {
                    isolated.completeExceptionally(failure);
                } else if (!isolated.complete(result)) { // it was cancelled
                    unwanted.accept(result);
                }
            } finally {
                exit(before);
            }
        });
        return isolated;
    }

    /**
     * Calls a method of the plugin that returns a stage without a result.
     *
     * @param method the name of the method, for messages
     * @return ends with the stage of the plugin, and fails with {@link BackendException}, or with a {@link
     *     VirtualMachineError}. Its cancel cancels the stage of the plugin, and has an effect if that ends then
     * @throws BackendException as {@link #invoke}
     */
    public CompletableFuture<Void> invokeStage(String method, Invocation<CompletionStage<Void>> invocation) {
        CompletionStage<Void> stage = invoke(method, invocation);
        PluginStage isolated = new PluginStage(() -> {
            boolean _ = invokeOrElse(method, () -> stage.toCompletableFuture().cancel(true), () -> false);
        });
        CompletionStage<Void> _ = invoke(
                method,
                () -> stage.whenComplete(
                        (_, failure) -> isolated.end(failure == null ? null : failure(method, failure))));
        return isolated;
    }

    private Throwable failure(String method, Throwable failure) {
        Throwable cause = failure;
        for (int depth = 0; depth < MAX_CAUSES && cause instanceof CompletionException; depth++) {
            cause = cause.getCause() == null ? new IllegalStateException(cause.getMessage()) : cause.getCause();
        }
        if (cause instanceof BackendException || cause instanceof VirtualMachineError) {
            return cause;
        }
        if (!(cause instanceof CancellationException)) { // mostly by the server
            LOG.atError()
                    .addKeyValue("plugin", plugin)
                    .setCause(cause)
                    .log("plugin failed in {} (plugin '{}')", method, plugin);
        }
        return new BackendException(ErrorCode.INTERNAL, where(method) + " failed: " + describe(cause), cause);
    }

    /** Ends with the stage of a plugin, also when it is cancelled. */
    private static final class PluginStage extends CompletableFuture<Void> {
        private final Runnable cancel;

        PluginStage(Runnable cancel) {
            this.cancel = cancel;
        }

        void end(@Nullable Throwable failure) {
            if (failure == null) {
                complete(null);
            } else {
                completeExceptionally(failure);
            }
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            cancel.run();
            return isDone();
        }
    }

    /**
     * Returns an executor that runs tasks with the plugin's context class loader. The tasks handle the plugin's errors
     * and exceptions.
     *
     * @param threads runs the tasks
     */
    public Executor executor(Executor threads) {
        return task -> threads.execute(() -> {
            ClassLoader before = enter();
            acting.add(Thread.currentThread());
            try {
                task.run();
            } finally {
                acting.remove(Thread.currentThread());
                exit(before);
            }
        });
    }

    /**
     * Finds the threads with code of the plugin on their stacks: platform threads, and threads that run tasks of an
     * {@linkplain #executor executor}.
     *
     * @return the threads with their stacks; threads of actions and of the plugin itself first
     */
    public Map<Thread, StackTraceElement[]> threads() {
        Map<Thread, StackTraceElement[]> all = new LinkedHashMap<>();
        acting.forEach(thread -> all.put(thread, thread.getStackTrace()));
        Map<Thread, StackTraceElement[]> platform = Thread.getAllStackTraces();
        platform.forEach((thread, stack) -> {
            if (loader.equals(thread.getContextClassLoader())) { // its own, rather than one of an execution
                all.put(thread, stack);
            }
        });
        platform.forEach(all::putIfAbsent);
        all.values().removeIf(stack -> !isInPlugin(stack));
        return all;
    }

    private boolean isInPlugin(StackTraceElement[] stack) {
        String name = loader.getName();
        return name != null && Stream.of(stack).anyMatch(frame -> name.equals(frame.getClassLoaderName()));
    }

    /** Closes something of the plugin; failures are logged, since no caller handles them. */
    public void close(String method, Action close) {
        try {
            invoke(method, () -> {
                close.run();
                return true;
            });
        } catch (BackendException e) {
            LOG.atWarn()
                    .addKeyValue("plugin", plugin)
                    .setCause(e)
                    .log("{} failed, its resources may leak (plugin '{}')", method, plugin);
        }
    }

    private String where(String method) {
        return "plugin '" + plugin + "': " + method;
    }

    /** Describes a failure and its causes in one line, without stack traces. */
    public static String describe(Throwable failure) {
        StringBuilder text = new StringBuilder();
        Throwable last = failure;
        for (int depth = 0; last != null && depth < MAX_CAUSES; depth++) {
            String message = last.getMessage();
            text.append(depth == 0 ? "" : "; caused by ")
                    .append(last.getClass().getName())
                    .append(message == null ? "" : ": " + message.strip());
            last = last.getCause();
        }
        return text + (text.indexOf(OTHER_LOADER) < 0 ? "" : CURE);
    }
}
