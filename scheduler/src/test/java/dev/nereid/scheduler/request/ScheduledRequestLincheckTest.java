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
 * Checks interleavings of a completion, a cancellation and a registration of a cancel action; of the step back to
 * waiting, a cancellation and an abandonment; and of that step, the next execution and a cancellation. There is one
 * completion, one release of the inputs, and no action that runs twice or begins after the completion; an action that
 * is registered for a cancelled execution runs. The other races for a request are for one compare-and-set.
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

    @Test
    void completesOnceIfExecutedAgain() {
        new ModelCheckingOptions()
                .iterations(1)
                .invocationsPerIteration(4_000)
                .threads(3)
                .actorsPerThread(1)
                .actorsBefore(0)
                .actorsAfter(0)
                .check(Rescheduling.class);
    }

    @Test
    void cancelsTheNextExecution() {
        new ModelCheckingOptions()
                .iterations(1)
                .invocationsPerIteration(4_000)
                .threads(3)
                .actorsPerThread(1)
                .actorsBefore(0)
                .actorsAfter(0)
                .check(ExecutingAgain.class);
    }

    /** A request that another instance takes as soon as it waits again. */
    public static class ExecutingAgain {
        private final Subject subject = new Subject();

        /** Begins the execution. */
        public ExecutingAgain() {
            subject.request.begin();
        }

        /** The execution ends, and the queue has the request again. */
        @Operation(runOnce = true)
        public void again() {
            subject.again();
        }

        /** The client cancels. */
        @Operation(runOnce = true)
        public void cancel() {
            subject.request.cancel();
        }

        /** The next execution, if the request waits for it. */
        @Operation(runOnce = true)
        public void next() {
            ScheduledRequest request = subject.request;
            if (subject.queued && request.begin()) {
                boolean cancelled = request.isCancelled();
                request.onCancel(subject::act, 2);
                subject.actionExpected = cancelled;
                request.complete(ResponseEvent.END, 2);
                request.release();
            } else {
                subject.closeWaiting = true;
            }
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            if (subject.closeWaiting) { // no instance took it
                subject.request.failUnqueued(new IllegalStateException("the queue is closed"));
            }
            subject.holds();
        }
    }

    /** A request that is put back to waiting at the end of an execution. */
    public static class Rescheduling {
        private final Subject subject = new Subject();

        /** Begins the execution. */
        public Rescheduling() {
            subject.request.begin();
        }

        /** The execution ends, and the queue has the request again. */
        @Operation(runOnce = true)
        public void again() {
            subject.again();
        }

        /** The client cancels. */
        @Operation(runOnce = true)
        public void cancel() {
            subject.request.cancel();
        }

        /** The server stops waiting. */
        @Operation(runOnce = true)
        public void abandon() {
            subject.request.abandon();
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            subject.holds();
        }
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
            subject.request.onCancel(subject::act, 1);
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

        /** {@code true} if the queue has the request again, so that an instance may take it. */
        private volatile boolean queued;

        /** {@code true} if an action was registered in an execution that was cancelled already. */
        private boolean actionExpected;

        /** {@code true} if no execution took the request while it waited. */
        private boolean closeWaiting;

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

        void again() {
            if (!request.isCompleted() && request.closeActions()) {
                if (request.reschedule(1, 0)) {
                    queued = true;
                    request.checkQueued();
                } else {
                    request.release();
                }
            } else {
                request.complete(ResponseEvent.END, 1);
                request.release();
            }
        }

        void act() {
            if (completions.get() > 0 || actions.incrementAndGet() > 1) {
                violations.incrementAndGet();
            }
        }

        void holds() {
            if (actionExpected && actions.get() == 0) {
                throw new AssertionError("actions: 0 (expected: 1 in the cancelled execution)");
            }
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
