package dev.nereid.server.memory;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Unmaps mappings, large ones on a separate thread. The kernel takes a millisecond for 16 MiB. Safe for use by any
 * thread.
 */
final class MappingReleaser implements AutoCloseable {
    /** Mappings of which more was touched are left to the thread. */
    private static final long MAX_INLINE = 2L << 20;

    private static final long IDLE_SECONDS = 10;

    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> Thread.ofPlatform()
                    .daemon()
                    .name("tensor-memory")
                    .inheritInheritableThreadLocals(false)
                    .unstarted(task));

    MappingReleaser() {
        thread.allowCoreThreadTimeOut(true);
    }

    void close(Mapping mapping) {
        if (mapping.counted() <= MAX_INLINE) {
            mapping.close();
            return;
        }
        try {
            thread.execute(mapping::close);
        } catch (RejectedExecutionException _) { // the pool was closed
            mapping.close();
        }
    }

    /** Closes the remaining mappings, and lets the thread end. */
    @Override
    public void close() {
        thread.shutdown();
    }
}
