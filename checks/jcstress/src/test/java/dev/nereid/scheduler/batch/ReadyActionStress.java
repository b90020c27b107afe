package dev.nereid.scheduler.batch;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import dev.nereid.api.ResponseFlow;
import dev.nereid.api.frontend.FlowSignal;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * Stress tests of {@link ReadyAction}: whatever makes a sender ready is seen, an action runs once, and references to the
 * request are released. The executor runs its tasks on the calling thread.
 */
public final class ReadyActionStress {
    private ReadyActionStress() {}

    /** A sender whose conditions the actors set. */
    private static final class FakeSender implements ReadyAction.Sender {
        volatile boolean over;
        volatile boolean delivering;
        volatile boolean open;
        final FlowSignal flow = new FlowSignal(() -> open || over);
        final AtomicInteger references = new AtomicInteger();
        final AtomicInteger runs = new AtomicInteger();
        final ReadyAction action = new ReadyAction(this, Runnable::run);

        void register() {
            action.set(runs::incrementAndGet);
        }

        void end() {
            over = true;
            action.check();
        }

        @Override
        public boolean isReady() {
            return over || (!delivering && flow.isOpen());
        }

        @Override
        public boolean isDelivering() {
            return delivering;
        }

        @Override
        public ResponseFlow flow() {
            return flow;
        }

        @Override
        public boolean tryRetain() {
            references.incrementAndGet();
            return true;
        }

        @Override
        public void release() {
            references.decrementAndGet();
        }

        @Override
        public void log(String event, Throwable cause) {
            throw new AssertionError(event, cause);
        }
    }

    /** Races a registration against the opening of the client's flow. */
    @JCStressTest
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "ran once")
    @Outcome(expect = FORBIDDEN, desc = "missed, run twice, or a reference left")
    @State
    public static class RegisterAgainstFlow {
        private final FakeSender sender = new FakeSender();

        /** The backend. */
        @Actor
        public void register() {
            sender.register();
        }

        /** The transport. */
        @Actor
        public void open() {
            sender.open = true;
            sender.flow.check();
        }

        /** The end. */
        @Arbiter
        public void count(II_Result result) {
            result.r1 = sender.runs.get();
            result.r2 = sender.references.get();
        }
    }

    /** Races a registration against the end of a slow delivery, after which the flow opens too. */
    @JCStressTest
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "ran once")
    @Outcome(expect = FORBIDDEN, desc = "missed, run twice, or a reference left")
    @State
    public static class RegisterAgainstDelivery {
        private final FakeSender sender = new FakeSender();

        /** A response waits for the thread that delivers. */
        public RegisterAgainstDelivery() {
            sender.delivering = true;
        }

        /** The backend. */
        @Actor
        public void register() {
            sender.register();
        }

        /** The thread that delivers, and writes. */
        @Actor
        public void deliver() {
            sender.delivering = false;
            sender.action.check();
            sender.open = true;
            sender.flow.check();
        }

        /** The end. */
        @Arbiter
        public void count(II_Result result) {
            result.r1 = sender.runs.get();
            result.r2 = sender.references.get();
        }
    }

    /** Races two registrations against the end of the sender; one action may replace the other. */
    @JCStressTest
    @Outcome(id = "1, 0", expect = ACCEPTABLE, desc = "one replaced the other")
    @Outcome(id = "2, 0", expect = ACCEPTABLE, desc = "one ran before the other was registered")
    @Outcome(expect = FORBIDDEN, desc = "missed, or a reference left")
    @State
    public static class ReplaceAgainstEnd {
        private final FakeSender sender = new FakeSender();

        /** One thread of the backend. */
        @Actor
        public void register() {
            sender.register();
        }

        /** Another thread of the backend, and the end of the sender or a cancellation. */
        @Actor
        public void end() {
            sender.register();
            sender.end();
        }

        /** The end. */
        @Arbiter
        public void count(II_Result result) {
            result.r1 = sender.runs.get();
            result.r2 = sender.references.get();
        }
    }
}
