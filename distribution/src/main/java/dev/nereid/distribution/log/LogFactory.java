package dev.nereid.distribution.log;

import dev.nereid.api.FatalErrorHandler;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.event.Level;

/**
 * Creates loggers that write to the standard error stream. Safe for use by any thread.
 *
 * <p>The server and its backends have one minimum level, libraries another one.
 */
public final class LogFactory implements ILoggerFactory {
    /** Above all levels. */
    private static final int OFF = Level.ERROR.toInt() + 10;

    private static final String OWN = "dev.nereid";
    /** Prefix of the names of backend loggers. */
    private static final String BACKENDS = "nereid";

    /** Prefix of the names of loggers that plugins have made. */
    static final String PLUGINS = BACKENDS + ".plugin.";

    private final ConcurrentMap<String, LineLogger> loggers = new ConcurrentHashMap<>();
    private final LogLines lines;
    private volatile int ownLevel = Level.INFO.toInt();
    private volatile int libraryLevel = Level.WARN.toInt();

    LogFactory() {
        this(
                new PrintStream(new FileOutputStream(FileDescriptor.err), false, StandardCharsets.UTF_8),
                InstantSource.system(),
                System::nanoTime,
                task -> CompletableFuture.delayedExecutor(LogLimit.WINDOW_NANOS, TimeUnit.NANOSECONDS)
                        .execute(task));
    }

    /**
     * Creates a factory.
     *
     * @param time the clock for the timestamps of lines
     * @param nanoTime the clock for the limit of lines
     * @param later runs a task after {@link LogLimit#WINDOW_NANOS}
     */
    LogFactory(PrintStream out, InstantSource time, LongSupplier nanoTime, LogLines.Later later) {
        lines = new LogLines(out, time, new LogLimit(nanoTime), later);
    }

    /**
     * Sets the minimum levels.
     *
     * @param own the minimum level of the server and its backends: trace, debug, info, warn, error or off
     * @param libraries the minimum level of everything else
     */
    public void setLevels(String own, String libraries) {
        ownLevel = levelNumber(own);
        libraryLevel = levelNumber(libraries);
        loggers.values().forEach(logger -> logger.setLevel(level(logger.getName())));
    }

    /**
     * Reports fatal errors that are logged, even if warnings are off, on the threads that log. Libraries catch
     * exceptions of their tasks, and only log them.
     */
    public void reportFatalErrors(FatalErrorHandler handler) {
        lines.report(handler);
    }

    /** Writes later lines in another format. */
    public void setFormat(LogFormat format) {
        lines.setFormat(format);
    }

    /** Writes later lines to a stream of the caller in place of standard error; returns the previous stream. */
    public PrintStream writeTo(PrintStream out) {
        return lines.writeTo(out);
    }

    @Override
    public Logger getLogger(String name) {
        return loggers.computeIfAbsent(name, unknown -> new LineLogger(unknown, level(unknown), lines));
    }

    private int level(String name) {
        return isBelow(name, OWN) || isBelow(name, BACKENDS) ? ownLevel : libraryLevel;
    }

    private static boolean isBelow(String name, String parent) {
        return name.equals(parent) || (name.startsWith(parent) && name.charAt(parent.length()) == '.');
    }

    private static int levelNumber(String level) {
        for (Level each : Level.values()) {
            if (each.name().equalsIgnoreCase(level)) {
                return each.toInt();
            }
        }
        return OFF;
    }
}
