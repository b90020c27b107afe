package dev.nereid.scheduler.request;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** What {@link CancellationState} promises an answer. */
public final class CancellationStateStress {
    private CancellationStateStress() {}

    /**
     * An action runs before the answer, or is known to the answer, which waits for it; it never comes behind its back.
     */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "answered first, the action is dropped")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "answered first, the action is known and dropped")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "known, and run")
    @Outcome(id = "0, 1", expect = FORBIDDEN, desc = "run behind the back of the answer")
    @State
    public static class CompleteAgainstAction {
        private final CompletionLatch latch = new CompletionLatch();
        private final CancellationState cancellation = new CancellationState();
        private int runs;

        /** Has it executed, and withdrawn. */
        public CompleteAgainstAction() {
            latch.begin();
            cancellation.request();
        }

        /** The instance. */
        @Actor
        public void complete(II_Result result) {
            latch.completeExecuting();
            CancelActions existing = cancellation.existing();
            result.r1 = existing == null ? 0 : 1;
            if (existing != null) {
                existing.close(() -> {});
            }
        }

        /** The backend asks, and the client withdraws. */
        @Actor
        public void act(II_Result result) {
            cancellation.onCancel(() -> runs++, latch);
            cancellation.notifyBackend(latch);
            result.r2 = runs;
        }
    }
}
