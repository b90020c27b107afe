package dev.nereid.scheduler.instance;

import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Checks interleavings of starts, one of which may fail, and of a cancellation. One thread is started at most, none
 * after a cancellation that succeeded, and a failed start may be tried again.
 */
@Tag("slow")
final class LateThreadLincheckTest {
    @Test
    void startsOrIsCancelled() {
        new ModelCheckingOptions()
                .iterations(5)
                .invocationsPerIteration(500)
                .threads(3)
                .actorsPerThread(2)
                .actorsBefore(0)
                .actorsAfter(1)
                .check(Started.class);
    }

    /** A thread whose first start fails. */
    public static class Started {
        private final AtomicInteger attempts = new AtomicInteger();
        private final AtomicInteger started = new AtomicInteger();
        private final AtomicInteger violations = new AtomicInteger();
        private final Thread thread = Thread.ofPlatform().unstarted(() -> {});
        private final LateThread late = new LateThread(() -> thread, _ -> {
            if (attempts.getAndIncrement() == 0) {
                throw new IllegalStateException("no memory");
            }
            started.incrementAndGet();
        });

        /** The first batch, or a later one. */
        @Operation
        public String start() {
            try {
                return late.start() ? "started" : "not started";
            } catch (IllegalStateException e) {
                return "failed";
            }
        }

        /** The close of the instance. */
        @Operation
        public boolean cancel() {
            boolean cancelled = late.cancel();
            if (cancelled == (late.thread() != null)) {
                violations.incrementAndGet();
            }
            return cancelled;
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            if (started.get() > 1 || violations.get() > 0) {
                throw new AssertionError(
                        "started: " + started + ", violations: " + violations + " (expected: 1 at most, 0)");
            }
        }
    }
}
