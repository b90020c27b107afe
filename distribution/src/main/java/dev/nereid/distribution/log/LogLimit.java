package dev.nereid.distribution.log;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.Level;

/**
 * Limits warnings and errors of one cause per second. Guarded by the lock of its owner.
 *
 * <p>A cause is a logger, a message pattern, and the type of the exception. All causes of one logger together have a
 * limit too, since the messages of some libraries contain values from clients. Other levels are not limited: they
 * report changes of state, or were enabled on purpose. The loading of models is not limited either: no client can cause
 * it.
 */
final class LogLimit {
    /** The period in which lines are counted. */
    static final long WINDOW_NANOS = 1_000_000_000L;

    /** The number of lines of one cause in a window. */
    static final int MAX_LINES = 10;

    /** The number of lines of one logger in a window. */
    static final int MAX_LOGGER_LINES = 50;

    private static final int MAX_CAUSES = 1024;
    private static final List<String> UNBOUNDED = List.of(
            "dev.nereid.scheduler.batch.OutputTracker",
            "dev.nereid.repository.ModelDirectory",
            "dev.nereid.repository.ModelRepository",
            "dev.nereid.repository.RemoteScan",
            "dev.nereid.repository.VersionPolicy",
            "dev.nereid.server.control.",
            "dev.nereid.server.lifecycle.",
            "dev.nereid.server.instance.",
            "dev.nereid.server.warmup.",
            "dev.nereid.repository.config.",
            "dev.nereid.server.host.");

    private final LongSupplier nanoTime;
    private final Map<Cause, Window> windows = new HashMap<>();

    /**
     * The key by which lines are counted. Immutable.
     *
     * @param text the message pattern; {@code null} for all of the logger together
     * @param thrown the type of the exception; {@code null} for none
     */
    record Cause(
            String logger, @Nullable String text, @Nullable Class<?> thrown) {}

    /** The number of suppressed lines of one cause, and the level of the first of them. */
    record Suppressed(Cause cause, Level level, long count) {}

    /** The lines of one cause in a window. */
    private static final class Window {
        private long startNanos;
        private int lines;
        private long suppressed;
        private Level level = Level.WARN;
    }

    LogLimit(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Counts a line; returns {@code false} if the limit is exceeded: {@link #collect} reports the line later. */
    boolean admits(String logger, Level level, @Nullable String text, @Nullable Class<?> thrown) {
        if (level.toInt() < Level.WARN.toInt() || UNBOUNDED.stream().anyMatch(logger::startsWith)) {
            return true;
        }
        long now = nanoTime.getAsLong();
        Cause cause = new Cause(logger, text, thrown);
        if (windows.size() >= MAX_CAUSES && !windows.containsKey(cause)) {
            windows.values().removeIf(window -> window.suppressed == 0 && isOver(window, now));
            if (windows.size() >= MAX_CAUSES) {
                cause = new Cause(logger, null, null);
            }
        }
        return admits(cause, level, cause.text() == null ? MAX_LOGGER_LINES : MAX_LINES, now)
                && (cause.text() == null || admits(new Cause(logger, null, null), level, MAX_LOGGER_LINES, now));
    }

    private boolean admits(Cause cause, Level level, int max, long now) {
        Window window = windows.computeIfAbsent(cause, _ -> {
            Window begun = new Window();
            begun.startNanos = now;
            return begun;
        });
        if (isOver(window, now)) {
            window.startNanos = now;
            window.lines = 0;
        }
        if (window.lines < max) {
            window.lines++;
            return true;
        }
        window.level = level;
        window.suppressed++;
        return false;
    }

    private static boolean isOver(Window window, long now) {
        return now - window.startNanos >= WINDOW_NANOS;
    }

    /** Returns the suppressed lines since the last call, and resets their counts. */
    List<Suppressed> collect() {
        List<Suppressed> collected = new ArrayList<>();
        windows.forEach((cause, window) -> {
            if (window.suppressed > 0) {
                collected.add(new Suppressed(cause, window.level, window.suppressed));
                window.suppressed = 0;
            }
        });
        return collected;
    }
}
