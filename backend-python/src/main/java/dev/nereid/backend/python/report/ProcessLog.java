package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.ModelContext;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Writes to the server's log what a process logs and prints. Safe for use by any thread.
 *
 * <p>LOG frames are lines of the model itself, with the file and line of the program. At most 5,000 lines and 16 MiB of
 * a process are written in a second; the number of the other ones is written a second later. What a process prints
 * comes from an {@code OutputReader}, which has its own limit, and is written as {@code [python m_0] text} for the
 * instance {@code m_0}.
 */
public final class ProcessLog implements AutoCloseable {
    /** The number of lines that are written in a second. */
    static final int MAX_LINES = 5000;

    /** The number of bytes that are written in a second. */
    static final int MAX_BYTES = 16 << 20;

    /** 1,024 characters in UTF-8. */
    private static final int MAX_FILE = 4 << 10;

    private static final int MAX_TEXT = 64 << 10;
    /** The text before the frames of an exception. */
    private static final String FRAMES = "\n\nAt:\n";

    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final ModelLog model;
    private final ModelContext context;
    private final String prefix;
    private final LongSupplier nanoTime;
    private final Delays delays;
    private final ReentrantLock lock = new ReentrantLock();

    /** Receives changes of the level. {@code null} while there are none to be sent. */
    @GuardedBy("lock")
    private @Nullable FrameSink sink;

    @GuardedBy("lock")
    private long second;

    @GuardedBy("lock")
    private int lines;

    @GuardedBy("lock")
    private long bytes;

    @GuardedBy("lock")
    private long leftOut;

    ProcessLog(ModelLog model, ModelContext context, String instance, LongSupplier nanoTime, Delays delays) {
        this.model = model;
        this.context = context;
        this.nanoTime = nanoTime;
        this.delays = delays;
        prefix = "[python " + requireNonNull(instance, "instance") + "] ";
        second = nanoTime.getAsLong();
    }

    /**
     * Sends the levels of the log by LOG_LEVELS, now and after changes, until {@link #close}. Called once, after OPEN
     * is sent, which sets the levels too. The receiver of the frames must not call this object.
     */
    public void sendLevels(FrameSink frames) {
        lock.lock();
        try {
            sink = requireNonNull(frames, "frames");
        } finally {
            lock.unlock();
        }
        model.add(this);
        sendLevels();
    }

    /** Sends the levels. They are read and sent under the lock, so that the last frame has the last ones. */
    void sendLevels() {
        lock.lock();
        try {
            if (sink != null) {
                sink.send(new FrameWriter()
                        .begin(FrameType.LOG_LEVELS, 0, 0, model.levels())
                        .end());
            }
        } finally {
            lock.unlock();
        }
    }

    /** Writes the line of a LOG frame; throws {@link FrameException} if it is malformed. */
    public void onLog(FrameReader frame) {
        Level level = level(frame.flags());
        long number = frame.id();
        long size = frame.remaining();
        String file = ReportTexts.within(frame, "file of a log line", MAX_FILE);
        String text = ReportTexts.within(frame, "text of a log line", MAX_TEXT);
        if (tryPass(size)) {
            int line = number < 0 || number > Integer.MAX_VALUE ? Integer.MAX_VALUE : (int) number;
            context.log(level, file, line, text);
        }
    }

    private static Level level(int flags) {
        return switch (flags) {
            case 0 -> Level.INFO;
            case 1 -> Level.WARNING;
            case 2 -> Level.ERROR;
            case 3 -> Level.DEBUG;
            default -> throw new FrameException("level of a log line: " + flags + " (expected: 0 to 3)");
        };
    }

    private boolean tryPass(long size) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            if (now - second >= SECOND) {
                second = now;
                lines = 0;
                bytes = 0;
            }
            if (lines < MAX_LINES && bytes + size <= MAX_BYTES) {
                lines++;
                bytes += size;
                return true;
            }
            leftOut++;
            if (leftOut > 1) {
                return false;
            }
        } finally {
            lock.unlock();
        }
        delays.run(TimeUnit.SECONDS.toMillis(1), this::reportLeftOut);
        return false;
    }

    private void reportLeftOut() {
        long count;
        lock.lock();
        try {
            count = leftOut;
            leftOut = 0;
        } finally {
            lock.unlock();
        }
        if (count > 0) {
            write(
                    Level.WARNING,
                    "… " + count + (count == 1 ? " line" : " lines")
                            + " of the model's log left out (expected: at most " + MAX_LINES + " lines and "
                            + (MAX_BYTES >> 20) + " MiB a second)");
        }
    }

    /** Writes a line that the process has printed, without line breaks. */
    public void line(String text) {
        write(Level.INFO, text);
    }

    /** Writes a line about the instance or its process as it is, without format elements. */
    public void write(Level level, String text) {
        context.logger().log(level, prefix + text);
    }

    /**
     * Writes an error of the model. Counts as one of its lines.
     *
     * @param text the text, perhaps with frames behind it
     * @param trace the traceback, in place of the frames; empty for none
     */
    public void error(String text, String trace) {
        int frames = text.indexOf(FRAMES);
        String message = frames < 0 ? text : text.substring(0, frames);
        String whole = trace.isEmpty() ? text : message + '\n' + trace;
        if (tryPass(whole.length())) {
            write(Level.ERROR, whole);
        }
    }

    /** Sends the levels of the log if they have changed, before the model executes something. */
    public void refreshLevels() {
        model.refresh();
    }

    /** Ends the frames, and writes the number of lines that were left out, if there are any. Later calls do nothing. */
    @Override
    public void close() {
        model.remove(this);
        lock.lock();
        try {
            sink = null;
        } finally {
            lock.unlock();
        }
        reportLeftOut();
    }
}
