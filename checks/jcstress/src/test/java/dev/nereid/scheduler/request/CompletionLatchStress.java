package dev.nereid.scheduler.request;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.ZZZ_Result;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/** Stress tests of {@link CompletionLatch} for all races. */
public final class CompletionLatchStress {
    private CompletionLatchStress() {}

    /** An instance takes a waiting request while its client cancels it. */
    @JCStressTest
    @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "executed")
    @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "cancelled")
    @Outcome(expect = FORBIDDEN, desc = "both, or neither")
    @State
    public static class BeginAgainstCancel {
        private final CompletionLatch latch = new CompletionLatch();

        /** The instance. */
        @Actor
        public void begin(ZZ_Result result) {
            result.r1 = latch.begin();
        }

        /** The client. */
        @Actor
        public void cancel(ZZ_Result result) {
            result.r2 = latch.completeWaiting();
        }
    }

    /** A request is executed and completed while its client cancels it. */
    @JCStressTest
    @Outcome(id = "true, false, true", expect = ACCEPTABLE, desc = "completed by its execution")
    @Outcome(id = "false, true, true", expect = ACCEPTABLE, desc = "cancelled while it waited")
    @Outcome(expect = FORBIDDEN, desc = "two completions, or none")
    @State
    public static class CompleteAgainstCancel {
        private final CompletionLatch latch = new CompletionLatch();

        /** The instance. */
        @Actor
        public void execute(ZZZ_Result result) {
            result.r1 = latch.begin() && latch.completeExecuting();
        }

        /** The client. */
        @Actor
        public void cancel(ZZZ_Result result) {
            result.r2 = latch.completeWaiting();
        }

        /** The final state. */
        @Arbiter
        public void end(ZZZ_Result result) {
            result.r3 = latch.isCompleted();
        }
    }

    /** Two ends of one execution. */
    @JCStressTest
    @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "the first")
    @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "the second")
    @Outcome(expect = FORBIDDEN, desc = "both, or neither")
    @State
    public static class CompleteAgainstComplete {
        private final CompletionLatch latch = new CompletionLatch();

        /** Begins the execution. */
        public CompleteAgainstComplete() {
            latch.begin();
        }

        /** The instance. */
        @Actor
        public void complete(ZZ_Result result) {
            result.r1 = latch.completeExecuting();
        }

        /** A thread of the backend. */
        @Actor
        public void fail(ZZ_Result result) {
            result.r2 = latch.completeExecuting();
        }
    }

    /** Writes before the completion are visible after it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "not completed yet")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "written, not completed yet")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "completed")
    @Outcome(id = "1, 0", expect = FORBIDDEN, desc = "completed, and an earlier write is not visible")
    @State
    public static class CompleteAfterContent {
        private final CompletionLatch latch = new CompletionLatch();
        private int content;

        /** Completes. */
        @Actor
        public void complete() {
            content = 1;
            latch.completeWaiting();
        }

        /** Reads. */
        @Actor
        public void read(II_Result result) {
            result.r1 = latch.isCompleted() ? 1 : 0;
            result.r2 = content;
        }
    }

    /** One reference is released while another thread adds a third and releases two. */
    @JCStressTest
    @Outcome(id = "true, false, false", expect = ACCEPTABLE, desc = "the first was the last")
    @Outcome(id = "false, false, true", expect = ACCEPTABLE, desc = "the other was the last")
    @Outcome(expect = FORBIDDEN, desc = "released twice, never, or too early")
    @State
    public static class ReleaseAgainstRetain {
        private final CompletionLatch latch = new CompletionLatch();

        /** Adds a second reference. */
        public ReleaseAgainstRetain() {
            latch.retain();
        }

        /** Releases one. */
        @Actor
        public void release(ZZZ_Result result) {
            result.r1 = latch.release();
        }

        /** Adds one, and releases both. */
        @Actor
        public void retain(ZZZ_Result result) {
            latch.retain();
            result.r2 = latch.release();
            result.r3 = latch.release();
        }
    }

    /** The thread of the last release sees the writes before all other releases. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "the second was the last, and sees the first")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "the first was the last, and sees the second")
    @Outcome(expect = FORBIDDEN, desc = "released while the other may still write")
    @State
    public static class ReleaseAfterUse {
        private final CompletionLatch latch = new CompletionLatch();
        private int first;
        private int second;

        /** Adds a second reference. */
        public ReleaseAfterUse() {
            latch.retain();
        }

        /** The first. */
        @Actor
        public void first(II_Result result) {
            first = 1;
            result.r1 = latch.release() ? second : 0;
        }

        /** The second. */
        @Actor
        public void second(II_Result result) {
            second = 1;
            result.r2 = latch.release() ? first : 0;
        }
    }

    /** A request is put back to waiting while its stream, or the server, completes it: wherever it is. */
    @JCStressTest
    @Outcome(id = "true, true, true", expect = ACCEPTABLE, desc = "put back, completed while it waits")
    @Outcome(id = "false, true, true", expect = ACCEPTABLE, desc = "completed during the execution")
    @Outcome(expect = FORBIDDEN, desc = "completed twice, or never")
    @State
    public static class RescheduleAgainstCompletion {
        private final CompletionLatch latch = new CompletionLatch();

        /** Begins the execution. */
        public RescheduleAgainstCompletion() {
            latch.begin();
        }

        /** The end of the execution. */
        @Actor
        public void reschedule(ZZZ_Result result) {
            result.r1 = latch.reschedule(1);
        }

        /** The stream. */
        @Actor
        public void complete(ZZZ_Result result) {
            while (!latch.isCompleted()) {
                result.r2 |= latch.completeExecuting() || latch.completeWaiting();
            }
        }

        /** The final state. */
        @Arbiter
        public void end(ZZZ_Result result) {
            result.r3 = latch.isCompleted();
        }
    }

    /** A late thread of the first execution while the second begins and ends. */
    @JCStressTest
    @Outcome(id = "true, false, true", expect = ACCEPTABLE, desc = "the first execution completed nothing")
    @Outcome(id = "false, true, false", expect = ACCEPTABLE, desc = "completed by the first, before its end")
    @Outcome(expect = FORBIDDEN, desc = "completed by the first during the second, or twice")
    @State
    public static class StaleExecution {
        private final CompletionLatch latch = new CompletionLatch();

        /** Begins the first execution. */
        public StaleExecution() {
            latch.begin();
        }

        /** The instance. */
        @Actor
        public void executeAgain(ZZZ_Result result) {
            result.r1 = latch.reschedule(1);
            result.r3 = result.r1 && latch.begin() && latch.completeExecuting(2);
        }

        /** A thread of the first execution. */
        @Actor
        public void fail(ZZZ_Result result) {
            result.r2 = latch.completeExecuting(1);
        }
    }

    /** A request that is put back and begins again while its client cancels it by a loop over waiting. */
    @JCStressTest
    @Outcome(id = "true, true", expect = ACCEPTABLE, desc = "cancelled after it began again: the second waits")
    @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "executed at the moment of the cancellation")
    @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "cancelled while it waited")
    @Outcome(expect = FORBIDDEN, desc = "neither")
    @State
    public static class BeginAgainAgainstCancel {
        private final CompletionLatch latch = new CompletionLatch();

        /** Waits after the first execution. */
        public BeginAgainAgainstCancel() {
            latch.begin();
            latch.reschedule(1);
        }

        /** The instance. */
        @Actor
        public void executeAndReturn(ZZ_Result result) {
            result.r1 = latch.begin() && latch.reschedule(2);
        }

        /** The client. */
        @Actor
        public void cancel(ZZ_Result result) {
            result.r2 = latch.completeWaiting();
        }
    }
}
