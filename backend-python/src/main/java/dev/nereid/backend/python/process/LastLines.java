package dev.nereid.backend.python.process;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/** The last lines that a process has printed, each cut to its first bytes. Guarded by its own lock. */
final class LastLines {
    static final int MAX_LINES = 20;

    /** The number of bytes of a line that are kept. */
    static final int MAX_LINE = 1000;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final byte[][] lines = new byte[MAX_LINES][];

    @GuardedBy("lock")
    private final int[] lengths = new int[MAX_LINES];

    @GuardedBy("lock")
    private final long[] cut = new long[MAX_LINES];

    /** The number of lines that were added. */
    @GuardedBy("lock")
    private long count;

    /** {@code true} if the next line takes the place of the last one. */
    @GuardedBy("lock")
    private boolean update;

    /**
     * Adds a line.
     *
     * @param bytes holds its first bytes, and is not kept
     * @param length the number of them
     * @param more the number of the bytes that were cut off
     * @param isUpdate whether the next line overwrites it
     */
    void add(byte[] bytes, int length, long more, boolean isUpdate) {
        lock.lock();
        try {
            if (!update) {
                count++;
            }
            update = isUpdate;
            int index = (int) ((count - 1) % MAX_LINES);
            byte[] line = lines[index];
            int kept = Math.min(length, MAX_LINE);
            if (line == null || line.length < kept) {
                line = new byte[kept <= 120 ? 120 : MAX_LINE];
                lines[index] = line;
            }
            System.arraycopy(bytes, 0, line, 0, kept);
            lengths[index] = kept;
            cut[index] = more + length - kept;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the lines, the oldest first. */
    List<String> texts() {
        List<String> texts = new ArrayList<>();
        lock.lock();
        try {
            for (long number = Math.max(0, count - MAX_LINES); number < count; number++) {
                int index = (int) (number % MAX_LINES);
                texts.add(OutputText.of(lines[index], lengths[index], cut[index]));
            }
        } finally {
            lock.unlock();
        }
        return List.copyOf(texts);
    }
}
