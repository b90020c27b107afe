package dev.nereid.distribution.log;

import dev.nereid.api.FatalErrorHandler;
import java.io.PrintStream;
import java.time.InstantSource;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;
import org.slf4j.event.Level;
import org.slf4j.helpers.MessageFormatter;

/** Formats log events as lines: time, thread, level, logger, data, text. Safe for use by any thread. */
final class LogLines {
    /** Maximum characters of one value. */
    private static final int MAX_VALUE_LENGTH = 4096;

    /** Maximum characters of a text. */
    private static final int MAX_TEXT_LENGTH = 16384;

    private volatile PrintStream out;
    private volatile FatalErrorHandler fatalErrors = FatalErrorHandler.NONE;
    private final InstantSource time;
    private final DateTimeFormatter format;
    private final Later later;
    private final ReentrantLock lock = new ReentrantLock();
    private final LogLimit limit;
    /** Whether the report of suppressed lines is scheduled. */
    private boolean isReportScheduled;

    /** Schedules tasks after a delay. */
    @FunctionalInterface
    interface Later {
        /** Runs a task after {@link LogLimit#WINDOW_NANOS}, on any thread. */
        void run(Runnable task);
    }

    LogLines(PrintStream out, InstantSource time, ZoneId zone, LogLimit limit, Later later) {
        this.out = out;
        this.time = time;
        this.format = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSS").withZone(zone);
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

    /** Writes later lines to another stream; returns the previous one. */
    PrintStream writeTo(PrintStream changed) {
        PrintStream before = out;
        out = changed;
        return before;
    }

    /** Writes an event, unless the limit of its cause is exceeded. */
    void write(
            String logger,
            Level level,
            List<KeyValuePair> data,
            @Nullable String pattern,
            Object @Nullable [] arguments,
            @Nullable Throwable thrown) {
        if (!admits(logger, level, pattern, thrown == null ? null : thrown.getClass())) {
            return;
        }
        StringBuilder line = begin(logger, level);
        for (KeyValuePair pair : data) {
            LogText.append(line, pair.key, MAX_VALUE_LENGTH);
            line.append('=');
            LogText.append(line, LogText.of(pair.value), MAX_VALUE_LENGTH);
            line.append(' ');
        }
        String text = arguments == null ? pattern : MessageFormatter.basicArrayFormat(pattern, arguments);
        LogText.append(line, String.valueOf(text), MAX_TEXT_LENGTH);
        line.append('\n');
        if (thrown != null) {
            LogTrace.append(line, thrown);
        }
        print(line);
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
        for (LogLimit.Suppressed one : suppressed) {
            StringBuilder line =
                    begin(one.cause().logger(), one.level()).append(one.count()).append(" more suppressed");
            if (one.cause().text() != null) {
                LogText.append(line.append(": "), one.cause().text(), MAX_VALUE_LENGTH);
            }
            print(line.append('\n'));
        }
    }

    private StringBuilder begin(String logger, Level level) {
        StringBuilder line = new StringBuilder(256);
        format.formatTo(time.instant(), line);
        line.append(" [");
        LogText.append(line, Thread.currentThread().getName(), MAX_VALUE_LENGTH);
        return line.append("] ")
                .append(level.name())
                .append(' ')
                .append(logger, logger.lastIndexOf('.') + 1, logger.length())
                .append(" - ");
    }

    private void print(StringBuilder line) {
        String text = line.toString();
        lock.lock();
        try {
            out.print(text);
            out.flush();
        } finally {
            lock.unlock();
        }
    }
}
