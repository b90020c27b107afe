package dev.nereid.api.frontend;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;

/** Stress tests of {@link FlowSignal}: an opening is never missed, and an action never runs twice. */
public final class FlowSignalStress {
    private FlowSignalStress() {}

    /** Races a registration against the opening of the flow. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "ran once")
    @Outcome(expect = FORBIDDEN, desc = "missed, or run twice")
    @State
    public static class RegisterAgainstOpening {
        private volatile boolean open;
        private final AtomicInteger runs = new AtomicInteger();
        private final FlowSignal flow = new FlowSignal(() -> open);

        /** The server. */
        @Actor
        public void register() {
            flow.whenOpen(runs::incrementAndGet);
        }

        /** The transport. */
        @Actor
        public void open() {
            open = true;
            flow.check();
        }

        /** The end. */
        @Arbiter
        public void count(I_Result result) {
            result.r1 = runs.get();
        }
    }

    /** Races two signals of an open flow for one action. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "ran once")
    @Outcome(expect = FORBIDDEN, desc = "missed, or run twice")
    @State
    public static class TwoSignals {
        private volatile boolean open;
        private final AtomicInteger runs = new AtomicInteger();
        private final FlowSignal flow = new FlowSignal(() -> open);

        /** Registers the action. */
        public TwoSignals() {
            flow.whenOpen(runs::incrementAndGet);
        }

        /** A write that completes. */
        @Actor
        public void sent() {
            open = true;
            flow.check();
        }

        /** The end of the connection. */
        @Actor
        public void close() {
            open = true;
            flow.check();
        }

        /** The end. */
        @Arbiter
        public void count(I_Result result) {
            result.r1 = runs.get();
        }
    }
}
