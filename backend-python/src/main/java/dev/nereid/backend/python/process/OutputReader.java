package dev.nereid.backend.python.process;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * Reads the output of a process on a daemon thread, and passes it on line by line. Safe for use by any thread.
 *
 * <p>The thread reads until the end of the output, whatever the receiver of the lines does, since the process would
 * block otherwise. Its memory is bounded: lines are cut after 8 KiB, with the number of bytes that are missing. Of
 * updates that overwrite each other (a carriage return without a line feed), one passes in a second, and the last one.
 * Blank lines do not pass. Control characters are escaped. A flood is cut: 2,000 lines and 512 KiB pass at once, then
 * 200 lines and 64 KiB in a second, and one line with the number of the ones that were left out.
 *
 * <p>The last 20 lines are kept, also where they did not pass, for the error of a process that has ended.
 */
public final class OutputReader implements AutoCloseable {
    private static final int BUFFER = 16 << 10;
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    /**
     * How often a quiet output is looked at before a report: about a second. The first pauses are short, since a
     * process that prints much would wait.
     */
    private static final int CHECKS = 25;

    private static final long MAX_PAUSE_MILLIS = 50;

    private final InputStream output;
    private final Consumer<String> lines;
    private final LongSupplier nanoTime;
    private final LastLines last = new LastLines();
    private final LineSplitter splitter = new LineSplitter(this::line);
    private final CountDownLatch ended = new CountDownLatch(1);
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    @GuardedBy("lock")
    private boolean closed;

    // Confined to the thread that reads.
    private final OutputLimit limit;
    private long updated;

    private OutputReader(InputStream output, Consumer<String> lines, LongSupplier nanoTime) {
        this.output = requireNonNull(output, "output");
        this.lines = requireNonNull(lines, "lines");
        this.nanoTime = requireNonNull(nanoTime, "nanoTime");
        long now = nanoTime.getAsLong();
        limit = new OutputLimit(now);
        updated = now - SECOND;
    }

    /**
     * Starts a daemon thread that reads.
     *
     * @param output the standard output and error of a process, such as that of {@link OutputPipe}: closed by this
     *     object. {@link #close} ends the thread at once only if the close of the stream ends a read in progress
     * @param lines receives each line on the thread that reads, without line break, and may be called until
     *     {@link #awaitEnd} says that the output has ended. While it blocks, the process may do so too. Its exceptions
     *     are ignored
     * @param nanoTime the clock, in nanoseconds
     * @return the reader, to be closed
     */
    public static OutputReader start(
            InputStream output, String threadName, Consumer<String> lines, LongSupplier nanoTime) {
        OutputReader reader = new OutputReader(output, lines, nanoTime);
        Thread.ofPlatform().daemon().name(threadName).start(reader::run);
        return reader;
    }

    /** Returns at most 20 last lines of the process, also left out ones, oldest first, each cut to 1,000 bytes. */
    public List<String> lastLines() {
        return last.texts();
    }

    /**
     * Waits until all output is read and passed on, at most for the timeout; returns whether it is. It ends with the
     * last process that has inherited it, which may be long after the first one.
     */
    public boolean awaitEnd(Duration timeout) throws InterruptedException {
        return ended.await(timeout.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Ends the thread, and closes the output; unread output is lost. Does not wait for the thread. Later calls do
     * nothing.
     */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        closeOutput();
    }

    private void run() {
        byte[] buffer = new byte[BUFFER];
        try {
            while (true) {
                if (limit.hasLeftOut()) {
                    awaitOutputOrReport();
                }
                int count = output.read(buffer, 0, buffer.length);
                if (count < 0) {
                    break;
                }
                split(buffer, count);
            }
        } catch (IOException _) { // closed, or the output cannot be read any more: its end in both cases
        } finally {
            closeOutput();
            try {
                splitter.end();
                if (limit.hasLeftOut()) {
                    pass(limit.report());
                }
            } finally {
                ended.countDown();
            }
        }
    }

    private void split(byte[] buffer, int count) {
        try {
            splitter.add(buffer, count);
        } catch (RuntimeException | Error _) { // such as no memory: the process would block if nothing read its output
        }
    }

    /** Reports lines that were left out, if there is no output for a second. */
    private void awaitOutputOrReport() throws IOException {
        for (int i = 0; i < CHECKS; i++) {
            long pause = i < 6 ? 1 << i : MAX_PAUSE_MILLIS;
            if (output.available() > 0 || !pause(pause)) {
                return;
            }
        }
        pass(limit.report());
    }

    /** Waits a moment; {@code false} if this reader is closed. */
    private boolean pause(long millis) throws IOException {
        lock.lock();
        try {
            long left = TimeUnit.MILLISECONDS.toNanos(millis);
            while (!closed && left > 0) {
                left = changed.awaitNanos(left);
            }
            return !closed;
        } catch (InterruptedException e) {
            throw new IOException(e); // ends the thread
        } finally {
            lock.unlock();
        }
    }

    private void line(byte[] bytes, int length, long more, boolean update) {
        if (more == 0 && OutputText.isBlank(bytes, length)) {
            return;
        }
        last.add(bytes, length, more, update);
        long now = nanoTime.getAsLong();
        if (update) {
            if (now - updated < SECOND) {
                return;
            }
            updated = now;
        }
        if (limit.isReportDue(now)) {
            pass(limit.report());
        }
        if (limit.tryPass(now, length, more)) {
            pass(OutputText.of(bytes, length, more));
        }
    }

    private void pass(String text) {
        try {
            lines.accept(text);
        } catch (RuntimeException | Error _) { // as for split
        } finally {
            boolean _ = Thread.interrupted(); // else the next read would close the pipe
        }
    }

    private void closeOutput() {
        try {
            output.close();
        } catch (IOException _) { // nothing is left to be read
        }
    }
}
