package dev.nereid.scheduler.queue;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Checks interleavings of a cancellation, an instance and a timeout. There are two waiting requests, one of which is
 * expired: each completes once and is released once, and the queue is empty at the end.
 */
@Tag("slow")
final class RequestQueueLincheckTest {
    @Test
    void completesEachRequestOnce() {
        new ModelCheckingOptions()
                .iterations(1) // three operations on three threads: there is one scenario
                .invocationsPerIteration(1_000)
                .threads(3)
                .actorsPerThread(1)
                .actorsBefore(0)
                .actorsAfter(0)
                .check(Waiting.class);
    }

    /** Two requests in a queue. */
    public static class Waiting {
        private static final long NOW = 100;

        private final TimeoutQueue timeouts = new TimeoutQueue(() -> {});
        private final ModelScope model =
                Scopes.of(ModelSettings.builder("m", 1).build(), new LeakCheckingMemory(), () -> NOW);
        private final RequestQueue queue = new RequestQueue(
                BatchPlanner.oneByOne(),
                PriorityPolicy.NONE,
                new EqualInputs(model.settings()),
                () -> NOW,
                timeouts,
                null);
        private final InstanceHandle handle = queue.source().register(() -> {}, () -> 0);
        private final Subject expired = new Subject();
        private final Subject unexpired = new Subject();

        /** Offers both. */
        public Waiting() {
            expired.offer(OptionalLong.of(NOW));
            unexpired.offer(OptionalLong.empty());
        }

        /** The clients cancel. */
        @Operation(runOnce = true)
        public void cancel() {
            expired.cancel();
            unexpired.cancel();
        }

        /** The timeout fires. */
        @Operation(runOnce = true)
        public void expire() {
            timeouts.runExpired(NOW);
        }

        /** An instance takes what there is. */
        @Operation(runOnce = true)
        public void take() {
            while (queue.source().poll(handle)) {
                handle.expired.forEach(QueueTimeouts::reject);
                handle.expired.clear();
                for (Executable taken : handle.taken) {
                    taken.request().complete(ResponseEvent.END);
                    taken.request().release();
                }
                handle.taken.clear();
            }
        }

        /** Says what must hold at the end. */
        @Validate
        public void holds() {
            expired.holds();
            unexpired.holds();
            if (queue.waiting() > 0) {
                throw new AssertionError("waiting: " + queue.waiting() + " (expected: 0)");
            }
        }

        /** A request, and what became of it. */
        private final class Subject implements ResponseObserver {
            private final AtomicInteger completions = new AtomicInteger();
            private final AtomicInteger releases = new AtomicInteger();
            private ScheduledRequest request;

            void offer(OptionalLong deadline) {
                CheckedRequest checked = new CheckedRequest(
                        new ModelVersion("m", 1),
                        "",
                        RequestInputs.of(List.of(), 1, releases::incrementAndGet),
                        RequestOutputs.all(List.of()),
                        Map.of(),
                        new RequestOptions(0, 0, deadline, Optional.empty()),
                        0);
                request = new ScheduledRequest(model, null, checked, this, 0);
                if (queue.offer(request, false) != OfferResult.Outcome.ACCEPTED) {
                    throw new AssertionError("refused");
                }
            }

            void cancel() {
                request.cancel();
            }

            void holds() {
                if (completions.get() != 1 || releases.get() != 1) {
                    throw new AssertionError(
                            "completions: " + completions + ", releases: " + releases + " (expected: 1, 1)");
                }
            }

            @Override
            public void onResponse(InferResponse response) {
                completions.addAndGet(100);
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
}
