package dev.nereid.backend.python.lifecycle;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Records the lines that a server of this program logs, each with its level in front. Safe for use by any thread. */
final class ServerLog extends Handler {
    /** Long, since other builds may run on the same machine. */
    private static final long LIMIT_SECONDS = 60;

    private static final Logger ROOT = Logger.getLogger("");

    /** A field, since loggers without one may be collected with their level. */
    private static final Logger BACKENDS = Logger.getLogger("nereid.backend");

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    private final List<String> lines = new CopyOnWriteArrayList<>();

    private ServerLog() {
        setLevel(Level.ALL);
    }

    /** Begins to record, with the details of backends. */
    static ServerLog open() {
        ServerLog log = new ServerLog();
        BACKENDS.setLevel(Level.FINE);
        ROOT.addHandler(log);
        return log;
    }

    @Override
    public void publish(LogRecord line) {
        lock.lock();
        try {
            Throwable thrown = line.getThrown();
            lines.add(line.getLevel() + " " + line.getMessage() + (thrown == null ? "" : " " + thrown));
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void flush() {}

    /** Ends the record. */
    @Override
    public void close() {
        ROOT.removeHandler(this);
    }

    List<String> lines() {
        return List.copyOf(lines);
    }

    /** Returns the lines with a text. */
    List<String> lines(String text) {
        return lines.stream().filter(line -> line.contains(text)).toList();
    }

    /** Waits for a line with a text. */
    String await(String text) throws InterruptedException {
        return await(text, line -> line.contains(text));
    }

    /** Waits for a line behind a mark that a model has printed, and returns the text behind the mark. */
    String awaitAfter(String mark) throws InterruptedException {
        String line = await(mark);
        return line.substring(line.indexOf(mark) + mark.length()).strip();
    }

    private String await(String label, Predicate<String> wanted) throws InterruptedException {
        lock.lock();
        try {
            long nanos = TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
            while (true) {
                for (String line : lines) {
                    if (wanted.test(line)) {
                        return line;
                    }
                }
                if (nanos <= 0) {
                    throw new AssertionError("no line with '" + label + "' in the log:\n" + String.join("\n", lines));
                }
                nanos = changed.awaitNanos(nanos);
            }
        } finally {
            lock.unlock();
        }
    }

    void clear() {
        lines.clear();
    }
}
