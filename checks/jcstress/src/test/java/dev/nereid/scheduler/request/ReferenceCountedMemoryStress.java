package dev.nereid.scheduler.request;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IZI_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** Stress tests of {@link ReferenceCountedMemory}. */
public final class ReferenceCountedMemoryStress {
    private ReferenceCountedMemoryStress() {}

    /** An output is leased while its response is closed. */
    @JCStressTest
    @Outcome(id = "0, true, 1", expect = ACCEPTABLE, desc = "leased, and freed by the end of the lease")
    @Outcome(id = "0, false, 1", expect = ACCEPTABLE, desc = "not leased")
    @Outcome(expect = FORBIDDEN, desc = "freed while leased, twice, or never")
    @State
    public static class LeaseAgainstClose {
        private final AtomicInteger freed = new AtomicInteger();
        private final ReferenceCountedMemory memory = ReferenceCountedMemory.of(freed::incrementAndGet, null);

        /** The holder of the lease. */
        @Actor
        public void lease(IZI_Result result) {
            result.r2 = memory.tryRetain();
            if (result.r2) {
                result.r1 = freed.get();
                memory.release();
            }
        }

        /** The holder of the response. */
        @Actor
        public void close() {
            memory.release();
        }

        /** The final state. */
        @Arbiter
        public void end(IZI_Result result) {
            result.r3 = freed.get();
        }
    }

    /** Two holders release parts of one output. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "freed once")
    @Outcome(expect = FORBIDDEN, desc = "twice, or never")
    @State
    public static class ReleaseAgainstRelease {
        private final AtomicInteger freed = new AtomicInteger();
        private final ReferenceCountedMemory memory = ReferenceCountedMemory.of(freed::incrementAndGet, null);

        /** Adds the second reference. */
        public ReleaseAgainstRelease() {
            memory.retain();
        }

        /** The holder of one part. */
        @Actor
        public void one() {
            memory.release();
        }

        /** The holder of the other part. */
        @Actor
        public void other() {
            memory.release();
        }

        /** The final state. */
        @Arbiter
        public void end(I_Result result) {
            result.r1 = freed.get();
        }
    }
}
