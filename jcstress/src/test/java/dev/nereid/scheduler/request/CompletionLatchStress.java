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
}
