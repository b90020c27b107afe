package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ModelContext;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;

/**
 * The log of a model: its level for all processes, and the log of each process. Safe for use by any thread.
 *
 * <p>The model has one of them, so that it needs one action of {@link ModelContext#onLogLevel}.
 */
public final class ModelLog implements AutoCloseable {
    private static final int INFO = 1;
    private static final int WARNING = 2;
    private static final int ERROR = 4;
    private static final int VERBOSE = 8;

    private final ModelContext context;
    private final LongSupplier nanoTime;
    private final Delays delays;
    private final List<ProcessLog> listeners = new CopyOnWriteArrayList<>();
    private final CancelHook hook;
    private volatile int levels;

    ModelLog(ModelContext context, LongSupplier nanoTime, Delays delays) {
        this.context = requireNonNull(context, "context");
        this.nanoTime = requireNonNull(nanoTime, "nanoTime");
        this.delays = requireNonNull(delays, "delays");
        hook = context.onLogLevel(level -> {
            levels = bits(level);
            listeners.forEach(ProcessLog::sendLevels);
        });
    }

    /** Sends the levels if they have changed: the server's log may have changed a moment ago. */
    public void refresh() {
        int now = bits(least());
        if (now != levels) {
            levels = now;
            listeners.forEach(ProcessLog::sendLevels);
        }
    }

    private Level least() {
        System.Logger logger = context.logger();
        if (logger.isLoggable(Level.DEBUG)) {
            return Level.DEBUG;
        } else if (logger.isLoggable(Level.INFO)) {
            return Level.INFO;
        } else if (logger.isLoggable(Level.WARNING)) {
            return Level.WARNING;
        }
        return logger.isLoggable(Level.ERROR) ? Level.ERROR : Level.OFF;
    }

    /**
     * Creates the log of a model, which follows the level of the server's log and is closed before the model is.
     *
     * @throws IllegalStateException as of {@link ModelContext#onLogLevel}
     */
    public static ModelLog open(ModelContext context, LongSupplier nanoTime) {
        return new ModelLog(context, nanoTime, Delays.on(context.executor()));
    }

    /** Returns the sum of written levels for {@code log_levels} of OPEN: 1 INFO, 2 WARNING, 4 ERROR, 8 VERBOSE. */
    public int levels() {
        return levels;
    }

    /** Creates the log of a process, to be closed when the process has ended. */
    public ProcessLog process(String instance) {
        return new ProcessLog(this, context, instance, nanoTime, delays);
    }

    /** Ends the changes of levels. When this returns, no frame of this log is sent any more. */
    @Override
    public void close() {
        hook.close();
        listeners.clear();
    }

    void add(ProcessLog listener) {
        listeners.add(listener);
    }

    void remove(ProcessLog listener) {
        listeners.remove(listener);
    }

    private static int bits(Level least) {
        return switch (least) {
            case ALL, TRACE, DEBUG -> VERBOSE | INFO | WARNING | ERROR;
            case INFO -> INFO | WARNING | ERROR;
            case WARNING -> WARNING | ERROR;
            case ERROR -> ERROR;
            case OFF -> 0;
        };
    }
}
