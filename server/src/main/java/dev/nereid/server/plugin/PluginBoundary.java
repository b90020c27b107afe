package dev.nereid.server.plugin;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The border to one plugin: every call into it outside of executions goes through here. Immutable.
 *
 * <p>Sets the plugin's loader as context class loader for the time of the call, and turns whatever the plugin throws
 * into a {@link BackendException}, so that no plugin can bring down the thread that called it.
 */
final class PluginBoundary {
    /** A call into the plugin. */
    interface Call<T> {
        /** Calls; the result may be {@code null} although the SPI forbids it. */
        T run() throws BackendException;
    }

    /** A call into the plugin that returns nothing. */
    interface Action {
        void run();
    }

    /** Causes may go round in circles. */
    private static final int MOST_CAUSES = 6;

    private static final Logger LOG = LoggerFactory.getLogger(PluginBoundary.class);

    private final String plugin;
    private final ClassLoader loader;

    PluginBoundary(String plugin, ClassLoader loader) {
        this.plugin = plugin;
        this.loader = loader;
    }

    ClassLoader loader() {
        return loader;
    }

    /**
     * Calls into the plugin.
     *
     * @param what which method, for messages
     * @param call the call
     * @return its result, never {@code null}
     * @throws BackendException what the plugin threw, or {@link ErrorCode#INTERNAL} for anything that it must not throw
     */
    @SuppressWarnings("NullAway") // A plugin is not compiled with our checks: it may return null.
    <T> T call(String what, Call<T> call) throws BackendException {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            T result = call.run();
            if (result == null) {
                throw new BackendException(ErrorCode.INTERNAL, where(what) + " returned null");
            }
            return result;
        } catch (BackendException | VirtualMachineError e) {
            throw e;
        } catch (Throwable e) {
            LOG.atError().addKeyValue("plugin", plugin).setCause(e).log("plugin failed in {}", what);
            throw new BackendException(ErrorCode.INTERNAL, where(what) + " failed: " + describe(e), e);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** Closes something of the plugin; failures are logged, since there is nobody to tell. */
    void close(String what, Action close) {
        try {
            call(what, () -> {
                close.run();
                return true;
            });
        } catch (BackendException e) {
            // Everything but the plugin's own, undeclared BackendException was logged on its way here.
            LOG.atWarn().addKeyValue("plugin", plugin).log("{} failed, what it held may be lost", what);
        }
    }

    private String where(String what) {
        return "plugin '" + plugin + "': " + what;
    }

    /** Describes a failure and what led to it in one line, without stack traces. */
    static String describe(Throwable failure) {
        StringBuilder text = new StringBuilder();
        Throwable last = failure;
        for (int depth = 0; last != null && depth < MOST_CAUSES; depth++) {
            String message = last.getMessage();
            text.append(depth == 0 ? "" : "; caused by ")
                    .append(last.getClass().getName())
                    .append(message == null ? "" : ": " + message.strip());
            last = last.getCause();
        }
        return text.toString();
    }
}
