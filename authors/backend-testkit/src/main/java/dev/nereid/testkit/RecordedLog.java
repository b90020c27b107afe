package dev.nereid.testkit;

import dev.nereid.spi.CancelHook;
import dev.nereid.spi.Metrics;
import java.text.MessageFormat;
import java.util.List;
import java.util.Queue;
import java.util.ResourceBundle;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A logger that records its lines, each with its level in front. Safe for use by any thread. */
public final class RecordedLog implements System.Logger {
    private final Queue<String> lines = new ConcurrentLinkedQueue<>();
    private final Metrics metrics = Metrics.unpublished(this);
    private final List<Consumer<Level>> levelActions = new CopyOnWriteArrayList<>();
    private volatile Level least = Level.TRACE;

    /** Creates an empty log. */
    public RecordedLog() {}

    /**
     * Returns the lines written so far.
     *
     * @return lines such as {@code INFO loaded}
     */
    public List<String> lines() {
        return List.copyOf(lines);
    }

    /**
     * Changes the least level that is recorded, which is {@link Level#TRACE} at first. The actions of {@link
     * FakeModelContext#onLogLevel} run in this call.
     *
     * @param changed the least level
     */
    public void setLevel(Level changed) {
        least = changed;
        levelActions.forEach(action -> action.accept(changed));
    }

    /** Runs an action now and at each change of the level. */
    CancelHook onLevel(Consumer<Level> action) {
        action.accept(least);
        levelActions.add(action);
        return () -> levelActions.remove(action);
    }

    /** Returns metrics that record mistakes in this log. */
    Metrics metrics() {
        return metrics;
    }

    @Override
    public String getName() {
        return "recorded";
    }

    @Override
    public boolean isLoggable(Level level) {
        return level.getSeverity() >= least.getSeverity();
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String message, @Nullable Throwable thrown) {
        if (isLoggable(level)) {
            lines.add(level + " " + message);
        }
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String format, @Nullable Object... values) {
        if (isLoggable(level)) {
            lines.add(level + " "
                    + (values == null || values.length == 0 ? format : MessageFormat.format(format, values)));
        }
    }
}
