package dev.nereid.distribution.process;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.nereid.api.FatalErrorHandler;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Exits the process with {@link ExitStatus#OUT_OF_MEMORY} when heap, metaspace or threads are exhausted. Writes one
 * line to the standard error stream first, for a supervisor to restart the process. Safe for use by any thread.
 *
 * <p>Allocates nothing after its creation: texts are bytes, and a waiting thread ends the process if the line cannot be
 * written within a second, such as to a full pipe.
 */
public final class OutOfMemoryExit implements FatalErrorHandler {
    private static final long WRITE_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final OutputStream err;
    private final IntConsumer halt;
    private final byte[] heap = line("heap");
    private final byte[] metaspace = line("metaspace");
    private final byte[] threads = line("threads");
    private final AtomicBoolean ended = new AtomicBoolean();
    private final Thread guard;
    private volatile boolean enabled = true;

    /**
     * Prepares the exit, and starts the waiting thread.
     *
     * @param err receives the line; unbuffered
     * @param halt ends the process at once with an exit status
     */
    public OutOfMemoryExit(OutputStream err, IntConsumer halt) {
        this.err = err;
        this.halt = halt;
        FatalErrorHandler.find(new OutOfMemoryError("")); // loads the classes
        guard = Thread.ofPlatform().name("fatal-exit").daemon(true).start(this::guard);
    }

    private static byte[] line(String resource) {
        return ("nereid: out of memory: " + resource + " exhausted, ends with exit code " + ExitStatus.OUT_OF_MEMORY
                        + " (--exit-on-out-of-memory=false keeps the process, which refuses requests)\n")
                .getBytes(US_ASCII);
    }

    /** Sets whether fatal errors end the process. */
    public void enable(boolean value) {
        enabled = value;
    }

    @Override
    public void onFatalError(OutOfMemoryError error) {
        if (!enabled || !ended.compareAndSet(false, true)) {
            return;
        }
        LockSupport.unpark(guard);
        try {
            err.write(text(error.getMessage()));
        } catch (IOException | OutOfMemoryError e) {
            // The stream is closed: the status reports the same.
        } finally {
            halt.accept(ExitStatus.OUT_OF_MEMORY);
        }
    }

    private byte[] text(@Nullable String message) {
        if (message == null) {
            return heap;
        }
        if (message.startsWith("Metaspace") || message.startsWith("Compressed class space")) {
            return metaspace;
        }
        return message.startsWith("unable to create") ? threads : heap;
    }

    private void guard() {
        while (!ended.get()) {
            LockSupport.park(this);
        }
        long end = System.nanoTime() + WRITE_TIMEOUT_NANOS;
        for (long remaining = WRITE_TIMEOUT_NANOS; remaining > 0; remaining = end - System.nanoTime()) {
            LockSupport.parkNanos(this, remaining);
        }
        halt.accept(ExitStatus.OUT_OF_MEMORY);
    }
}
