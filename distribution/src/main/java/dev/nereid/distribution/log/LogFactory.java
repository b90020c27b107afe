package dev.nereid.distribution.log;

import dev.nereid.api.FatalErrorHandler;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.time.ZoneId;
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
 * <p>The server and its backends have one least level, libraries another one.
 */
public final class LogFactory implements ILoggerFactory {
    /** Above all levels. */
    private static final int OFF = Level.ERROR.toInt() + 10;

    private static final String OWN = "dev.nereid";
    /** The loggers of backends are named after them, behind this. */
    private static final String BACKENDS = "nereid";

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
     * @param out where lines are written
     * @param time tells the time of lines
     * @param nanoTime tells the time that limits lines
     * @param later runs a task after {@link LogLimit#WINDOW_NANOS}
     */
    LogFactory(PrintStream out, InstantSource time, LongSupplier nanoTime, LogLines.Later later) {
        lines = new LogLines(out, time, ZoneId.systemDefault(), new LogLimit(nanoTime), later);
    }

    /**
     * Sets what is logged.
     *
     * @param own the least level of the server and its backends: trace, debug, info, warn, error or off
     * @param libraries that of everything else
     */
    public void setLevels(String own, String libraries) {
        ownLevel = levelNumber(own);
        libraryLevel = levelNumber(libraries);
        loggers.values().forEach(logger -> logger.setLevel(level(logger.getName())));
    }

    /**
     * Has fatal errors reported that are logged, at whatever level of warnings: libraries catch what their tasks throw,
     * and do nothing but log it.
     *
     * @param handler is told of them, on the threads that log
     */
    public void reportFatalErrors(FatalErrorHandler handler) {
        lines.report(handler);
    }

    /**
     * Has later lines written elsewhere than to the standard error stream of the process.
     *
     * @param out where to; belongs to the caller
     * @return where they were written before
     */
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
        for (Level known : Level.values()) {
            if (known.name().equalsIgnoreCase(level)) {
                return known.toInt();
            }
        }
        return OFF;
    }
}
