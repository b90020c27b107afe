package dev.nereid.scheduler.request;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
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
            cancellation.onCancel(() -> runs++, latch, 1);
            cancellation.notifyBackend(latch);
            result.r2 = runs;
        }
    }

    /**
     * Races a cancellation against the step back to waiting. Exactly one thread completes the request: the canceller
     * while it waits, or the thread that puts it back, which sees the cancellation before or after that.
     */
    @JCStressTest
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "completed by the thread that ends the execution")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "completed by the canceller")
    @Outcome(expect = FORBIDDEN, desc = "completed twice, or never")
    @State
    public static class RescheduleAgainstCancel {
        private final CompletionLatch latch = new CompletionLatch();
        private final CancellationState cancellation = new CancellationState();

        /** Begins the execution. */
        public RescheduleAgainstCancel() {
            latch.begin();
        }

        /** The end of the execution, as {@code BackendRequest} and {@code RescheduledRequests} do it. */
        @Actor
        public void reschedule(II_Result result) {
            if (cancellation.isRequested() || !cancellation.closeActions()) {
                result.r1 = latch.completeExecuting(1) ? 1 : 0;
                return;
            }
            latch.reschedule(1);
            cancellation.openActions();
            if (cancellation.isRequested() && latch.completeWaiting()) {
                result.r1 = 1;
            }
        }

        /** The client, as {@code ScheduledRequest.cancel} does it. */
        @Actor
        public void cancel(II_Result result) {
            cancellation.request();
            boolean completed = latch.completeWaiting();
            if (!completed) {
                cancellation.notifyBackend(latch);
                completed = latch.completeWaiting();
            }
            result.r2 = completed ? 1 : 0;
        }
    }

    /**
     * Races a cancellation against the step back to waiting and the next execution, which registers an action. One
     * thread completes the request before that execution, or the action of that execution runs.
     */
    @JCStressTest
    @Outcome(id = "1, 0, 0", expect = ACCEPTABLE, desc = "completed by the thread that ends the first execution")
    @Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "completed by the canceller, between the executions")
    @Outcome(id = "0, 0, 1", expect = ACCEPTABLE, desc = "the action of the second execution ran")
    @Outcome(expect = FORBIDDEN, desc = "completed twice, or an action that nothing runs")
    @State
    public static class ExecuteAgainAgainstCancel {
        private final CompletionLatch latch = new CompletionLatch();
        private final CancellationState cancellation = new CancellationState();
        private final AtomicInteger runs = new AtomicInteger();

        /** Begins the execution. */
        public ExecuteAgainAgainstCancel() {
            latch.begin();
        }

        /** The end of the execution, and an instance that takes the request before its cancellation is looked for. */
        @Actor
        public void executeAgain(III_Result result) {
            if (cancellation.isRequested() || !cancellation.closeActions()) {
                result.r1 = latch.completeExecuting(1) ? 1 : 0;
                return;
            }
            latch.reschedule(1);
            cancellation.openActions();
            if (latch.begin()) {
                cancellation.onCancel(runs::incrementAndGet, latch, 2);
            }
        }

        /** The client, as {@code ScheduledRequest.cancel} does it. */
        @Actor
        public void cancel(III_Result result) {
            cancellation.request();
            boolean completed = latch.completeWaiting();
            if (!completed) {
                cancellation.notifyBackend(latch);
                completed = latch.completeWaiting();
            }
            result.r2 = completed ? 1 : 0;
        }

        /** The final state. */
        @Arbiter
        public void end(III_Result result) {
            result.r3 = runs.get();
        }
    }

    /** Races a late registration by a backend against the step back to waiting and the next execution. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "the action is dropped with its execution")
    @Outcome(expect = FORBIDDEN, desc = "an action of the first execution ran in the second")
    @State
    public static class RescheduleAgainstAction {
        private final CompletionLatch latch = new CompletionLatch();
        private final CancellationState cancellation = new CancellationState();
        private int runs;

        /** Begins the execution. */
        public RescheduleAgainstAction() {
            latch.begin();
        }

        /** The end of the execution, and a cancelled second one. */
        @Actor
        public void executeAgain() {
            cancellation.closeActions();
            latch.reschedule(1);
            cancellation.openActions();
            latch.begin();
            cancellation.request();
            cancellation.notifyBackend(latch);
        }

        /** A late thread of the backend. */
        @Actor
        public void act() {
            cancellation.onCancel(() -> runs++, latch, 1);
        }

        /** The final state. */
        @Arbiter
        public void end(II_Result result) {
            result.r1 = runs;
        }
    }
}
