package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class OldestTest {
    private final List<String> batches = new ArrayList<>();

    private SteppedSequences start(int maxBatch, SequencePlan plan) {
        return new SteppedSequences(SteppedSequences.settings(maxBatch), plan, batch -> {
            batches.add(String.join(
                    " ",
                    batch.requests().stream()
                            .map(request -> SequenceErrors.text(
                                            request.sequence().orElseThrow().id()) + ":" + request.id())
                            .toList()));
            FakeInstance.copy(batch);
        });
    }

    @Test
    void theTimelineOfTheDocuments() {
        try (SteppedSequences s = start(4, Plans.oldest(4, 0))) {
            for (int sequence = 1; sequence <= 4; sequence++) { // four sequences that arrive one after the other
                s.send(sequence(sequence).start(), 1);
                s.send(sequence(sequence), 2);
            }
            s.send(sequence(1), 3);
            Sent backlog = s.send(sequence(5).start(), 1);
            assertThat(s.step(0)).isTrue();
            assertThat(batches).containsExactly("1:1 2:1 3:1 4:1");
            assertThat(s.step(0)).isTrue();
            assertThat(s.step(0)).isTrue();
            assertThat(batches).containsExactly("1:1 2:1 3:1 4:1", "1:2 2:2 3:2 4:2", "1:3");
            assertThat(backlog.observer().isSilent()).isTrue();

            s.send(sequence(3).end(), 3); // its slot goes to the fifth
            assertThat(s.step(0)).isTrue();
            assertThat(s.step(0)).isTrue();
            assertThat(batches.subList(3, 5)).containsExactly("3:3", "5:1");
        }
    }

    @Test
    void aBatchNeverHasTwoRequestsOfASequence() {
        try (SteppedSequences s = start(8, Plans.oldest(8, 0))) {
            for (int i = 1; i <= 5; i++) {
                s.send(i == 1 ? sequence(1).start() : sequence(1), i);
            }
            s.steps();
            assertThat(batches).containsExactly("1:1", "1:2", "1:3", "1:4", "1:5");
        }
    }

    @Test
    void waitsForAPreferredSize() {
        try (SteppedSequences s = start(8, Plans.oldest(8, 1000, 3))) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            assertThat(s.step(0)).isFalse();
            s.send(sequence(3).start(), 1);
            s.send(sequence(4).start(), 1);
            assertThat(s.step(0)).isTrue();
            assertThat(s.step(0)).isFalse();
            s.advance(TimeUnit.MICROSECONDS.toNanos(1000));
            assertThat(s.step(0)).isTrue();
            assertThat(batches).containsExactly("1:1 2:1 3:1", "4:1");
        }
    }

    @Test
    void theNextRequestWaitsForTheEndOfADeferredExecution() {
        List<DeferredExecution> deferred = new ArrayList<>();
        try (SteppedSequences s = new SteppedSequences(SteppedSequences.settings(8), Plans.oldest(8, 0), batch -> {
            FakeInstance.copy(batch);
            deferred.add(batch.defer());
        })) {
            s.send(sequence(1).start(), 1);
            Sent second = s.send(sequence(1).end(), 2);
            Sent other = s.send(sequence(2).start(), 3);
            assertThat(s.step(0)).isTrue();
            assertThat(s.step(0)).isFalse();
            deferred.removeFirst().complete();
            assertThat(other.sum()).isEqualTo(3);
            assertThat(s.step(0)).isTrue();
            deferred.removeFirst().complete();
            assertThat(second.sum()).isEqualTo(2);
        }
    }

    @Test
    void aRequestOfAnotherShapeIsInTheNextBatch() {
        try (SteppedSequences s = start(8, Plans.oldest(8, 0))) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), s.request(2).floats("IN2", Shape.of(1, 1), 0));
            s.send(sequence(3).start(), 3);
            s.steps();
            assertThat(batches).containsExactly("1:1", "2:2", "3:3");
        }
    }

    @Test
    void oneThatIsCancelledAmongTheCandidatesEndsItsSequence() {
        try (SteppedSequences s = start(8, Plans.oldest(1, 0))) {
            Sent cancelled = s.send(sequence(1).start(), 1);
            Sent after = s.send(sequence(1), 2);
            Sent next = s.send(sequence(2).start(), 3);
            cancelled.cancellation().cancel();
            after.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            s.steps();
            assertThat(batches).containsExactly("2:3");
            assertThat(next.sum()).isEqualTo(3);
        }
    }

    @Test
    void aCancellationWhileABatchIsTakenBringsNoOtherShapeIntoIt() throws Exception {
        try (SteppedSequences s = start(8, Plans.oldest(8, 0))) {
            ScheduledRequest first =
                    (ScheduledRequest) s.send(sequence(1).start().end(), 1).cancellation();
            ScheduledRequest second =
                    (ScheduledRequest) s.send(sequence(2).start(), 2).cancellation();
            Sent other = s.send(sequence(3).start(), s.request(3).floats("IN2", Shape.of(1, 1), 0));
            Thread canceller = new Thread(second::cancel);
            s.onClock = () -> {
                if (!first.isWaiting()) { // it has begun, with the lock
                    s.onClock = () -> {};
                    canceller.start();
                    while (!second.isCompleted()) {
                        Thread.onSpinWait();
                    }
                }
            };
            s.steps();
            canceller.join();
            s.steps();
            assertThat(batches).containsExactly("1:1", "3:3");
            assertThat(other.sum()).isEqualTo(3);
        }
    }
}
