package dev.nereid.scheduler;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** What {@link Withdrawal} promises an answer. */
public final class WithdrawalStress {
    private WithdrawalStress() {}

    /** An action runs before the answer, or is known to the answer, which waits for it; it never comes behind its back. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "answered first, the action is dropped")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "answered first, the action is known and dropped")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "known, and run")
    @Outcome(id = "0, 1", expect = FORBIDDEN, desc = "run behind the back of the answer")
    @State
    public static class AnswerAgainstAction {
        private final CompletionLatch latch = new CompletionLatch();
        private final Withdrawal withdrawal = new Withdrawal();
        private int runs;

        /** Has it executed, and withdrawn. */
        public AnswerAgainstAction() {
            latch.begin();
            withdrawal.ask();
        }

        /** The instance. */
        @Actor
        public void answer(II_Result result) {
            latch.answerExecuting();
            CancelActions existing = withdrawal.existing();
            result.r1 = existing == null ? 0 : 1;
            if (existing != null) {
                existing.close(() -> {});
            }
        }

        /** The backend asks, and the client withdraws. */
        @Actor
        public void act(II_Result result) {
            withdrawal.onCancel(() -> runs++, latch);
            withdrawal.tellBackend(latch);
            result.r2 = runs;
        }
    }
}
