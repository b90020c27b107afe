package dev.nereid.cuda;

import dev.nereid.spi.BackendException;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Runs actions when work of a GPU has ended, in the order in which they were added. Safe for use by any thread; the
 * actions run on one separate platform thread, one at a time. For one stream, so that the order is that of the work.
 *
 * <p>The number of waiting actions is bounded by the caller, as by {@link
 * dev.nereid.spi.BackendTraits#maxDeferred()}.
 */
public final class CompletionThread implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(CompletionThread.class.getName());
    private static final Duration FOREVER = Duration.ofSeconds(Long.MAX_VALUE);

    /** Between two attempts to wait. */
    private static final long PAUSE_NANOS = 1_000_000;

    /** Action that runs when work has ended. */
    @FunctionalInterface
    public interface Completion {
        /** Runs without blocking; exceptions are logged. {@code failure} is {@code null} if the work succeeded. */
        void run(@Nullable BackendException failure);
    }

    /** The fence of work, and actions before and after the wait for it; without a fence, the end of the thread. */
    private record Waiting(@Nullable EventFence fence, Runnable before, Completion action) {}

    private final BlockingQueue<Waiting> waiting = new LinkedBlockingQueue<>();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final Thread thread;

    /** Starts the thread. */
    public CompletionThread(String name) {
        thread = Thread.ofPlatform().daemon().name(name).start(this::runAll);
    }

    /**
     * Adds work. Never blocks.
     *
     * @param fence the end of the work, owned by this thread from now on, which releases it before the action runs
     * @param action run once, after the actions that were added before
     * @throws IllegalStateException if it was closed; the fence stays with the caller
     */
    public void add(EventFence fence, Completion action) {
        add(fence, () -> {}, action);
    }

    /**
     * Adds work of which something is done before it has ended. Never blocks.
     *
     * @param fence as of {@link #add(EventFence, Completion)}
     * @param before run once, after the actions that were added before, while the work may be under way, such as {@link
     *     dev.nereid.spi.DeferredExecution#complete()} for outputs with this fence. May wait for the work; its exceptions
     *     are logged
     * @param action run once, after that and after the work
     * @throws IllegalStateException as there
     */
    public void add(EventFence fence, Runnable before, Completion action) {
        if (closed.get()) {
            throw new IllegalStateException("completion thread '" + thread.getName() + "': closed");
        }
        waiting.add(new Waiting(fence, before, action));
    }

    /** Waits for all work that was added, and for its actions. To be called after the last {@link #add}. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            waiting.add(new Waiting(null, () -> {}, _ -> {}));
        }
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true; // the actions use what the caller frees next
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void runAll() {
        while (true) {
            Waiting next;
            try {
                next = waiting.take();
            } catch (InterruptedException e) {
                continue; // nobody has this thread to interrupt it; whoever did does not end the work of a GPU
            }
            EventFence fence = next.fence();
            if (fence == null) {
                return;
            }
            run(next.before());
            BackendException failure = failureOf(fence);
            run(() -> next.action().run(failure));
        }
    }

    /** Waits for the end of work, whatever else fails meanwhile: memory that it uses is freed after that. */
    private static @Nullable BackendException failureOf(EventFence fence) {
        while (true) {
            try {
                boolean ignored = fence.await(FOREVER);
                release(fence);
                return null;
            } catch (BackendException e) {
                release(fence);
                return e;
            } catch (RuntimeException | Error e) { // the thread waits again
                report("wait for work of a GPU failed", e);
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
    }

    private static void release(EventFence fence) {
        try {
            fence.release();
        } catch (RuntimeException | Error e) {
            report("event of a GPU not returned", e);
        }
    }

    private static void run(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException | Error e) {
            report("completion of work of a GPU failed", e);
        }
    }

    /** Logs a problem, and passes one of the virtual machine to the thread's handler. The thread goes on. */
    private static void report(String problem, Throwable cause) {
        LOG.log(System.Logger.Level.ERROR, problem, cause);
        if (cause instanceof VirtualMachineError) {
            Thread current = Thread.currentThread();
            current.getUncaughtExceptionHandler().uncaughtException(current, cause);
        }
    }
}
