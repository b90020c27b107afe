package dev.nereid.backend.python.memory;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Sends RELEASE for slots of outgoing segments. Safe for use by any thread.
 *
 * <p>One thread sends at a time. Slots of other threads wait meanwhile, and go with its next frame, so that no thread waits
 * for another one.
 */
final class ReleaseFrames {
    private static final int LARGEST_FRAME = 8000;

    private final FrameSink sink;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private long[] waiting = new long[32];

    @GuardedBy("lock")
    private int size;

    @GuardedBy("lock")
    private boolean sending;

    // Of the thread that sends.
    private final FrameWriter writer = new FrameWriter();
    private long[] sent = new long[32];

    ReleaseFrames(FrameSink sink) {
        this.sink = sink;
    }

    void send(int segment, long offset) {
        lock.lock();
        try {
            if (size + 2 > waiting.length) {
                waiting = Arrays.copyOf(waiting, 2 * waiting.length);
            }
            waiting[size++] = segment;
            waiting[size++] = offset;
            if (sending) {
                return;
            }
            sending = true;
        } finally {
            lock.unlock();
        }
        boolean ended = false;
        try {
            for (int count = next(); count > 0; count = next()) {
                for (int start = 0; start < count; start += LARGEST_FRAME) {
                    send(start, Math.min(count, start + LARGEST_FRAME));
                }
            }
            ended = true;
        } finally {
            if (!ended) {
                end();
            }
        }
    }

    /** Takes the slots that wait, and returns their number. At none, this thread sends no longer. */
    private int next() {
        lock.lock();
        try {
            int count = size / 2;
            if (count == 0) {
                sending = false;
            } else {
                long[] taken = waiting;
                waiting = sent;
                sent = taken;
                size = 0;
            }
            return count;
        } finally {
            lock.unlock();
        }
    }

    private void end() {
        lock.lock();
        try {
            sending = false;
        } finally {
            lock.unlock();
        }
    }

    private void send(int start, int end) {
        writer.begin(FrameType.RELEASE, 0, end - start, 0);
        for (int i = start; i < end; i++) {
            writer.u32((int) sent[2 * i]).u32(0).u64(sent[2 * i + 1]);
        }
        sink.send(writer.end());
    }
}
