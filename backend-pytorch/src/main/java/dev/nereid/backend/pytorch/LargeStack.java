package dev.nereid.backend.pytorch;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs work on a thread with a large stack: PyTorch's compiler calls itself for each operation of a chain and each bracket
 * of a script, and ends the process where the stack ends. Static functions only.
 */
final class LargeStack {
    /** Memory of the process as far as it is used: many thousands of operations. */
    private static final long BYTES = 256L << 20;

    private static final long SMALLER = 16;

    private LargeStack() {}

    /** Runs the work; returns its result or rethrows its exception. An interrupt does not end the work, and is kept. */
    static <T> T call(Supplier<T> work) {
        Result<T> result = new Result<>();
        Thread thread = start(() -> result.run(work));
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return result.get();
    }

    /** Starts a thread, with a smaller stack where there is no address space for a large one. */
    private static Thread start(Runnable work) {
        Thread.Builder.OfPlatform builder =
                Thread.ofPlatform().name("pytorch-compile").daemon();
        try {
            return builder.stackSize(BYTES).start(work);
        } catch (OutOfMemoryError e) { // as the JDK says it; a full heap, or no thread at all, fails once more
            return builder.stackSize(BYTES / SMALLER).start(work);
        }
    }

    /** Result or exception of the work. Written by its thread, and read after the end of that thread. */
    private static final class Result<T> {
        private @Nullable T value;
        private @Nullable Throwable failure;

        void run(Supplier<T> work) {
            try {
                value = work.get();
            } catch (RuntimeException | Error e) {
                failure = e;
            }
        }

        T get() {
            if (failure instanceof RuntimeException exception) {
                throw exception;
            }
            if (failure instanceof Error error) {
                throw error;
            }
            T done = value;
            if (done == null) {
                throw new IllegalStateException("the work has no result");
            }
            return done;
        }
    }
}
