package dev.nereid.scheduler.instance;

import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Checks interleavings of starts, one of which may fail, of ends, and of a cancellation. There is one thread at most, none
 * after a cancellation that succeeded, and none ends for which a start or a cancellation relies on it. A failed start may
 * be tried again.
 */
@Tag("slow")
final class LazyThreadLincheckTest {
    @Test
    void startsAndEndsOrIsCancelled() {
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
        private final AtomicInteger ended = new AtomicInteger();
        private final AtomicInteger running = new AtomicInteger();
        private final Thread thread = Thread.ofPlatform().unstarted(() -> {});
        private final InstanceThread.LazyThread late = new InstanceThread.LazyThread(() -> thread, _ -> {
            if (attempts.getAndIncrement() == 0) {
                throw new IllegalStateException("no memory");
            }
            if (running.incrementAndGet() > 1) {
                violations.incrementAndGet();
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

        /** The end of the thread, which only the thread itself calls. */
        @Operation(nonParallelGroup = "thread")
        public String leave() {
            if (started.get() == ended.get()) {
                return "none";
            }
            running.decrementAndGet(); // before, since another one may start from then on
            if (late.leave()) {
                ended.incrementAndGet();
                return "left";
            }
            running.incrementAndGet();
            return "needed";
        }

        /** The close of the instance. */
        @Operation
        public boolean cancel() {
            boolean cancelled = late.cancel();
            if (cancelled && late.thread() != null) {
                violations.incrementAndGet();
            }
            return cancelled;
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            boolean hasThread = late.thread() != null;
            if (started.get() - ended.get() != (hasThread ? 1 : 0) || violations.get() > 0) {
                throw new AssertionError("started: " + started + ", ended: " + ended + ", violations: " + violations
                        + " (expected: one less ended while there is a thread, 0)");
            }
        }
    }
}
