package dev.nereid.backend.python.call;

import dev.nereid.backend.python.frame.FrameWriter;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Writers of frames for any thread, each used by one thread at a time. Lock-free; safe for use by any thread.
 *
 * <p>A response is written on the thread of the model that responds. A writer for each such thread would be memory for each
 * pair of model and process; a new one for each frame an allocation of native memory.
 */
final class WriterPool {
    private static final int SIZE = 8;

    /** In bytes; a writer that has grown further is dropped. */
    private static final long KEPT = 1 << 20;

    private final AtomicReferenceArray<@Nullable FrameWriter> writers = new AtomicReferenceArray<>(SIZE);

    FrameWriter take() {
        int start = (int) Thread.currentThread().threadId();
        for (int i = 0; i < SIZE; i++) {
            int at = start + i & SIZE - 1;
            if (writers.getPlain(at) != null) {
                FrameWriter writer = writers.getAndSet(at, null);
                if (writer != null) {
                    return writer;
                }
            }
        }
        return new FrameWriter();
    }

    /** Puts a writer back, which the caller does not use any more. */
    void give(FrameWriter writer) {
        if (writer.size() > KEPT) {
            return;
        }
        int start = (int) Thread.currentThread().threadId();
        for (int i = 0; i < SIZE; i++) {
            if (writers.compareAndSet(start + i & SIZE - 1, null, writer)) {
                return;
            }
        }
    }
}
