package dev.nereid.server.lifecycle;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** Stress tests of {@link LeaseCounter}: leases against a close. The actors are different threads, so other stripes. */
public final class LeaseCounterStress {
    private LeaseCounterStress() {}

    /** A counter and how often its action ran. */
    static class Counted {
        final LeaseCounter leases = new LeaseCounter(8);
        final AtomicInteger ends = new AtomicInteger();

        /** Acquires and releases; returns 1 if it got a lease, 2 if the action had run meanwhile. */
        int use() {
            if (!leases.acquire()) {
                return 0;
            }
            int result = ends.get() == 0 ? 1 : 2;
            leases.release();
            return result;
        }

        void close() {
            leases.close(ends::incrementAndGet);
        }
    }

    /** A use against a close. The results: what the use got, and how often the action ran. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "used, then closed once")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "came too late")
    @Outcome(expect = FORBIDDEN, desc = "closed during the use, twice, or never")
    @State
    public static class UseAgainstClose extends Counted {
        /** A request. */
        @Actor
        public void request(II_Result result) {
            result.r1 = use();
        }

        /** An unload. */
        @Actor
        public void unload() {
            close();
        }

        /** The final state. */
        @Arbiter
        public void end(II_Result result) {
            result.r2 = ends.get();
        }
    }

    /** A use against an eviction. The results: what the use got, and how often the action ran. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "used, then evicted")
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "used, and not evicted")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "evicted before")
    @Outcome(id = "0, 0", expect = FORBIDDEN, desc = "refused by nobody but the eviction, which did not happen")
    @Outcome(expect = FORBIDDEN, desc = "evicted during the use")
    @State
    public static class UseAgainstEviction extends Counted {
        private volatile boolean isOver;

        /** A request, which is tried again while the counter is suspended. */
        @Actor
        public void request(II_Result result) {
            int got = use();
            while (got == 0 && ends.get() == 0 && !isOver) {
                got = use();
            }
            result.r1 = got == 0 && ends.get() == 0 ? use() : got;
        }

        /** An eviction. */
        @Actor
        public void evict() {
            if (leases.suspend()) {
                close();
            } else {
                leases.resume();
            }
            isOver = true;
        }

        /** The final state. */
        @Arbiter
        public void end(II_Result result) {
            result.r2 = ends.get();
        }
    }

    /** The last two leases of a closed counter, released by other threads than acquired them. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "closed once")
    @Outcome(expect = FORBIDDEN, desc = "closed twice, or never")
    @State
    public static class LastReleases extends Counted {
        /** Acquires both leases. */
        public LastReleases() {
            leases.acquire();
            leases.acquire();
            close();
        }

        /** A release. */
        @Actor
        public void first() {
            leases.release();
        }

        /** Another one. */
        @Actor
        public void second() {
            leases.release();
        }

        /** The final state. */
        @Arbiter
        public void end(I_Result result) {
            result.r1 = ends.get();
        }
    }

    /** The release of a lease, by another thread than acquired it, against a close. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "closed once")
    @Outcome(expect = FORBIDDEN, desc = "closed twice, or never")
    @State
    public static class ReleaseAgainstClose extends Counted {
        /** Acquires the lease. */
        public ReleaseAgainstClose() {
            leases.acquire();
        }

        /** The release. */
        @Actor
        public void release() {
            leases.release();
        }

        /** An unload. */
        @Actor
        public void unload() {
            close();
        }

        /** The final state. */
        @Arbiter
        public void end(I_Result result) {
            result.r1 = ends.get();
        }
    }

    /** A lease that is acquired during the close and released afterwards. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "closed after the release")
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "came too late")
    @Outcome(expect = FORBIDDEN, desc = "closed while leased, twice, or never")
    @State
    public static class AcquireAgainstClose extends Counted {
        private boolean leased;

        /** A request. */
        @Actor
        public void acquire() {
            leased = leases.acquire();
        }

        /** An unload. */
        @Actor
        public void unload() {
            close();
        }

        /** The final state. */
        @Arbiter
        public void end(II_Result result) {
            int before = ends.get();
            if (leased) {
                leases.release();
                result.r1 = before == 0 ? 1 : 2;
            }
            result.r2 = ends.get();
        }
    }
}
