package dev.nereid.distribution.log;

import dev.nereid.plugin.jar.PluginThreads;
import java.lang.StackWalker.StackFrame;
import java.util.Optional;
import java.util.logging.Handler;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.bridge.SLF4JBridgeHandler;

/**
 * Brings records of {@code java.util.logging} to the server's log: records of plugins with the levels of the server,
 * others with the levels of libraries. Immutable; safe for use by any thread.
 *
 * <p>A plugin comes here by {@code java.util.logging} and {@code System.Logger}, and by an SLF4J in its jars that has {@code
 * slf4j-jdk14}. A record is of the plugin with a method on the stack, whatever the name of its logger.
 */
public final class PluginLogBridge extends SLF4JBridgeHandler {
    private static final StackWalker STACK = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

    /** How far a plugin's method may be from its call of a logger. */
    private static final int MAX_FRAMES = 64;

    private PluginLogBridge() {}

    /** Replaces the handlers of the root logger. */
    public static void install() {
        removeHandlersForRootLogger();
        java.util.logging.Logger root = LogManager.getLogManager().getLogger("");
        Handler bridge = new PluginLogBridge();
        root.addHandler(bridge);
    }

    @Override
    protected Logger getSLF4JLogger(LogRecord entry) {
        return plugin().map(
                        plugin -> LoggerFactory.getLogger(LogFactory.PLUGINS + plugin + "." + entry.getLoggerName()))
                .orElseGet(() -> super.getSLF4JLogger(entry));
    }

    /** Finds the plugin of the calling thread. */
    private static Optional<String> plugin() {
        return STACK.walk(frames -> frames.limit(MAX_FRAMES)
                .map(StackFrame::getDeclaringClass)
                .map(Class::getClassLoader)
                .flatMap(loader -> PluginThreads.pluginOf(loader).stream())
                .findFirst());
    }
}
