package dev.nereid.scheduler.request;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.Scopes;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Checks interleavings of a completion, a cancellation and a registration of a cancel action. There is one completion,
 * one release of the inputs, and no action that runs twice or begins after the completion. The other races for a
 * request are for one compare-and-set.
 */
@Tag("slow")
final class ScheduledRequestLincheckTest {
    @Test
    void completesOnce() {
        new ModelCheckingOptions()
                .iterations(1) // three operations on three threads: there is one scenario
                .invocationsPerIteration(4_000)
                .threads(3)
                .actorsPerThread(1)
                .actorsBefore(0)
                .actorsAfter(0)
                .check(Executing.class);
    }

    /** A request in execution, for whose cancellation a thread of its backend registers an action. */
    public static class Executing {
        private final Subject subject = new Subject();

        /** Begins the execution. */
        public Executing() {
            subject.request.begin();
        }

        /** The execution ends. */
        @Operation(runOnce = true)
        public void complete() {
            subject.request.complete(ResponseEvent.END);
            subject.request.release();
        }

        /** The client cancels. */
        @Operation(runOnce = true)
        public void cancel() {
            subject.request.cancel();
        }

        /** The backend registers an action. */
        @Operation(runOnce = true)
        public void listen() {
            subject.request.onCancel(subject::act);
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            subject.holds();
        }
    }

    /** A request, and what became of it. */
    private static final class Subject implements ResponseObserver {
        private final AtomicInteger completions = new AtomicInteger();
        private final AtomicInteger releases = new AtomicInteger();
        private final AtomicInteger actions = new AtomicInteger();
        private final AtomicInteger violations = new AtomicInteger();
        private final ScheduledRequest request;

        Subject() {
            ModelScope model = Scopes.of(ModelSettings.builder("m", 1).build(), new LeakCheckingMemory(), () -> 0);
            CheckedRequest checked = new CheckedRequest(
                    new ModelVersion("m", 1),
                    "",
                    RequestInputs.of(List.of(), 1, releases::incrementAndGet),
                    RequestOutputs.all(List.of()),
                    Map.of(),
                    RequestOptions.DEFAULT,
                    0);
            request = new ScheduledRequest(model, null, checked, this, 0);
        }

        void act() {
            if (completions.get() > 0 || actions.incrementAndGet() > 1) {
                violations.incrementAndGet();
            }
        }

        void holds() {
            if (completions.get() != 1 || releases.get() != 1 || violations.get() > 0) {
                throw new AssertionError("completions: " + completions + ", releases: " + releases + ", violations: "
                        + violations + " (expected: 1, 1, 0)");
            }
        }

        @Override
        public void onResponse(InferResponse response) {
            violations.incrementAndGet();
        }

        @Override
        public void onCompleted() {
            completions.incrementAndGet();
        }

        @Override
        public void onError(InferenceException error) {
            completions.incrementAndGet();
        }
    }
}
