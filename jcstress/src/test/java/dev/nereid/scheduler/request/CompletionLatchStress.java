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

/** What {@link CompletionLatch} promises, for all that race for it. */
public final class CompletionLatchStress {
    private CompletionLatchStress() {}

    /** A request that waits is taken by an instance while its client withdraws it. */
    @JCStressTest
    @Outcome(id = "true, false", expect = ACCEPTABLE, desc = "executed")
    @Outcome(id = "false, true", expect = ACCEPTABLE, desc = "withdrawn")
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

    /** A request is executed and answered while its client withdraws it. */
    @JCStressTest
    @Outcome(id = "true, false, true", expect = ACCEPTABLE, desc = "answered by its execution")
    @Outcome(id = "false, true, true", expect = ACCEPTABLE, desc = "withdrawn while it waited")
    @Outcome(expect = FORBIDDEN, desc = "two answers, or none")
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

        /** What is left. */
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

        /** Has it executed. */
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

    /** What was written before the answer is read after it. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "not answered yet")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "written, not answered yet")
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "answered")
    @Outcome(id = "1, 0", expect = FORBIDDEN, desc = "answered, and what came before is not to be seen")
    @State
    public static class CompleteAfterContent {
        private final CompletionLatch latch = new CompletionLatch();
        private int content;

        /** Answers. */
        @Actor
        public void complete() {
            content = 1;
            latch.completeWaiting();
        }

        /** Looks. */
        @Actor
        public void read(II_Result result) {
            result.r1 = latch.isCompleted() ? 1 : 0;
            result.r2 = content;
        }
    }

    /** One user goes while another adds a third, which goes as well. */
    @JCStressTest
    @Outcome(id = "true, false, false", expect = ACCEPTABLE, desc = "the first was the last")
    @Outcome(id = "false, false, true", expect = ACCEPTABLE, desc = "the other was the last")
    @Outcome(expect = FORBIDDEN, desc = "given back twice, never, or too early")
    @State
    public static class ReleaseAgainstRetain {
        private final CompletionLatch latch = new CompletionLatch();

        /** Has two users. */
        public ReleaseAgainstRetain() {
            latch.retain();
        }

        /** Goes. */
        @Actor
        public void release(ZZZ_Result result) {
            result.r1 = latch.release();
        }

        /** Adds one, and both go. */
        @Actor
        public void retain(ZZZ_Result result) {
            latch.retain();
            result.r2 = latch.release();
            result.r3 = latch.release();
        }
    }

    /** Whoever gives the memory back sees what all users wrote. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "the second was the last, and sees the first")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "the first was the last, and sees the second")
    @Outcome(expect = FORBIDDEN, desc = "given back while the other may still write")
    @State
    public static class ReleaseAfterUse {
        private final CompletionLatch latch = new CompletionLatch();
        private int first;
        private int second;

        /** Has two users. */
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
