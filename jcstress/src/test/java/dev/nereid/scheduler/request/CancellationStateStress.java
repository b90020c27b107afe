package dev.nereid.scheduler.request;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** Stress tests of {@link CancellationState} against a completion. */
public final class CancellationStateStress {
    private CancellationStateStress() {}

    /**
     * Races a cancel action against the completion. The action runs before the completion, or the completion sees it
     * and waits for it; it never runs unseen.
     */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "completed first, the action is dropped")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "completed first, the action is seen and dropped")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "seen, and run")
    @Outcome(id = "0, 1", expect = FORBIDDEN, desc = "run unseen by the completion")
    @State
    public static class CompleteAgainstAction {
        private final CompletionLatch latch = new CompletionLatch();
        private final CancellationState cancellation = new CancellationState();
        private int runs;

        /** Begins the execution, and cancels it. */
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

        /** The backend registers an action, and the client cancels. */
        @Actor
        public void act(II_Result result) {
            cancellation.onCancel(() -> runs++, latch);
            cancellation.notifyBackend(latch);
            result.r2 = runs;
        }
    }
}
