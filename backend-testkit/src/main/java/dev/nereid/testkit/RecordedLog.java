package dev.nereid.testkit;

import dev.nereid.spi.Metrics;
import java.text.MessageFormat;
import java.util.List;
import java.util.Queue;
import java.util.ResourceBundle;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;

/** A logger that records its lines, each with its level in front. Safe for use by any thread. */
public final class RecordedLog implements System.Logger {
    private final Queue<String> lines = new ConcurrentLinkedQueue<>();
    private final Metrics metrics = Metrics.unpublished(this);

    /** Creates an empty log. */
    public RecordedLog() {}

    /**
     * Returns what was written so far.
     *
     * @return lines such as {@code INFO loaded}
     */
    public List<String> lines() {
        return List.copyOf(lines);
    }

    /** Returns metrics whose mistakes are recorded. */
    Metrics metrics() {
        return metrics;
    }

    @Override
    public String getName() {
        return "recorded";
    }

    @Override
    public boolean isLoggable(Level level) {
        return true;
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String message, @Nullable Throwable thrown) {
        lines.add(level + " " + message);
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String format, @Nullable Object... values) {
        lines.add(level + " " + (values == null || values.length == 0 ? format : MessageFormat.format(format, values)));
    }
}
