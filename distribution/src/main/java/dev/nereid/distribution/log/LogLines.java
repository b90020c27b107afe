package dev.nereid.distribution.log;

import dev.nereid.api.FatalErrorHandler;
import java.io.PrintStream;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;
import org.slf4j.event.Level;
import org.slf4j.helpers.MessageFormatter;

/** Writes log events as lines of a format, up to a limit for each cause. Safe for use by any thread. */
final class LogLines {
    private volatile PrintStream out;
    private volatile FatalErrorHandler fatalErrors = FatalErrorHandler.NONE;
    private final InstantSource time;
    private volatile LogFormatter formatter = new PlainFormatter();
    private final Later later;
    private final ReentrantLock lock = new ReentrantLock();
    private final LogLimit limit;
    /** {@code true} if the report of suppressed lines is scheduled. */
    private boolean isReportScheduled;

    /** Schedules tasks after a delay. */
    @FunctionalInterface
    interface Later {
        /** Runs a task after {@link LogLimit#WINDOW_NANOS}, on any thread. */
        void run(Runnable task);
    }

    LogLines(PrintStream out, InstantSource time, LogLimit limit, Later later) {
        this.out = out;
        this.time = time;
        this.limit = limit;
        this.later = later;
    }

    /** Sets the handler of fatal errors that are causes of events. */
    void report(FatalErrorHandler handler) {
        fatalErrors = handler;
    }

    /** Reports a cause that is a fatal error. */
    void check(@Nullable Throwable thrown) {
        fatalErrors.check(thrown);
    }

    /** Writes later lines in another format. */
    void setFormat(LogFormat changed) {
        formatter = changed.formatter();
    }

    /** Writes later lines to another stream; returns the previous one. */
    PrintStream writeTo(PrintStream changed) {
        PrintStream before = out;
        out = changed;
        return before;
    }

    /**
     * Writes an event, unless the limit of its cause is exceeded. Throws nothing: a line informs, and its failure must
     * not end its thread or its request.
     */
    void write(
            String logger,
            Level level,
            List<KeyValuePair> data,
            @Nullable String pattern,
            Object @Nullable [] arguments,
            @Nullable Throwable thrown) {
        try {
            if (admits(logger, level, pattern, thrown == null ? null : thrown.getClass())) {
                String text = arguments == null ? pattern : MessageFormatter.basicArrayFormat(pattern, arguments);
                write(event(logger, level, data, String.valueOf(text), thrown));
            }
        } catch (Throwable e) {
            writeInPart(logger, level, pattern, e);
        }
    }

    /** Writes the pattern of an event of which the data, the arguments or the cause cannot be formatted. */
    private void writeInPart(String logger, Level level, @Nullable String pattern, Throwable failure) {
        try {
            check(failure);
            List<KeyValuePair> data =
                    List.of(new KeyValuePair("incomplete", failure.getClass().getName()));
            write(event(logger, level, data, String.valueOf(pattern), null));
        } catch (Throwable _) {
            // The heap is full, or the stream is broken: there is nothing left to write with.
        }
    }

    private boolean admits(String logger, Level level, @Nullable String text, @Nullable Class<?> thrown) {
        boolean mustReport = false;
        lock.lock();
        try {
            if (limit.admits(logger, level, text, thrown)) {
                return true;
            }
            mustReport = !isReportScheduled;
            isReportScheduled = true;
        } finally {
            lock.unlock();
        }
        if (mustReport) {
            later.run(this::report);
        }
        return false;
    }

    /** Writes a line for each cause with suppressed lines. */
    private void report() {
        List<LogLimit.Suppressed> suppressed;
        lock.lock();
        try {
            isReportScheduled = false;
            suppressed = limit.collect();
        } finally {
            lock.unlock();
        }
        for (LogLimit.Suppressed group : suppressed) {
            String cause =
                    group.cause().text() == null ? "" : ": " + group.cause().text();
            write(event(
                    group.cause().logger(),
                    group.level(),
                    List.of(),
                    group.count() + " more suppressed" + cause,
                    null));
        }
    }

    private LogEvent event(
            String logger, Level level, List<KeyValuePair> data, String text, @Nullable Throwable thrown) {
        return new LogEvent(time.instant(), Thread.currentThread().getName(), level, logger, data, text, thrown);
    }

    private void write(LogEvent event) {
        StringBuilder lines = new StringBuilder(256);
        formatter.append(lines, event);
        String text = lines.toString();
        lock.lock();
        try {
            out.print(text);
            out.flush();
        } finally {
            lock.unlock();
        }
    }
}
