package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

final class DirectTest {
    private final Accumulator accumulator = new Accumulator();

    private SteppedSequences start(SequencePlan plan) {
        return new SteppedSequences(SteppedSequences.settings(plan.slots()), plan, accumulator);
    }

    @Test
    void theTimelineOfTheDocuments() {
        try (SteppedSequences s = start(Plans.direct(2))) {
            s.send(sequence(10).start(), 1); // alone: one row, that of its slot
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RS10");

            Sent zero = s.send(sequence(10), 2); // two sequences share a batch
            Sent one = s.send(sequence(11).start(), 100);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("R10 RS11");
            assertThat(zero.sum()).isEqualTo(3);
            assertThat(one.sum()).isEqualTo(100);

            Sent second = s.send(sequence(11), 10); // the first slot has no request
            Sent two = s.send(sequence(12).start(), 7); // and the third sequence no slot
            Sent twoAgain = s.send(sequence(12), 1);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("-0 R11");
            assertThat(second.sum()).isEqualTo(110);
            assertThat(two.observer().isSilent()).isTrue();
            assertThat(s.queue().backlog()).isEqualTo(1);

            Sent last = s.send(sequence(10).end(), 4); // its slot goes to the backlog
            s.send(sequence(11), 1);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RE10 R11", "RS12", "R12");
            assertThat(last.sum()).isEqualTo(7);
            assertThat(two.sum()).isEqualTo(7);
            assertThat(twoAgain.sum()).isEqualTo(8);
            assertThat(s.queue().backlog()).isZero();
        }
    }

    @Test
    void requestsOfOneSequenceAreExecutedInOrder() {
        try (SteppedSequences s = start(Plans.direct(4))) {
            Sent first = s.send(sequence(1).start(), 1);
            Sent second = s.send(sequence(1), 2);
            Sent third = s.send(sequence(1).end(), 3);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RS1", "R1", "RE1");
            assertThat(first.sum()).isEqualTo(1);
            assertThat(second.sum()).isEqualTo(3);
            assertThat(third.sum()).isEqualTo(6);
        }
    }

    @Test
    void theLowestFreeSlotOverAllInstances() {
        Accumulator other = new Accumulator();
        try (SteppedSequences s =
                new SteppedSequences(SteppedSequences.settings(2), Plans.direct(2), accumulator, other)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.send(sequence(3).start(), 1);
            s.send(sequence(4).start().end(), 1);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RS1 RS3");
            assertThat(other.batches()).containsExactly("RS2 RSE4");

            s.send(sequence(2).end(), 1);
            s.steps();
            other.batches();
            s.send(sequence(5).start(), 1);
            s.steps();
            assertThat(other.batches()).containsExactly("RS5");
        }
    }

    @Test
    void aRequestOfAnotherShapeWaitsForTheNextBatch() {
        try (SteppedSequences s = start(Plans.direct(3))) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), s.request(5).floats("IN2", Shape.of(1, 2), 0));
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RS1 -0", "-0 RS2");
        }
    }

    @Test
    void waitsForTheDelayOrEnoughSlots() {
        try (SteppedSequences s = start(Plans.direct(4, 1000, 0.5f))) {
            s.send(sequence(1).start(), 1);
            assertThat(s.step(0)).isFalse();
            s.send(sequence(2).start(), 1);
            assertThat(s.step(0)).isTrue();
            s.send(sequence(2), 1);
            assertThat(s.step(0)).isFalse();
            s.advance(TimeUnit.MICROSECONDS.toNanos(1000));
            assertThat(s.step(0)).isTrue();
            assertThat(accumulator.batches()).containsExactly("RS1 RS2", "-0 R2");
        }
    }

    @Test
    void aDelayWithoutUtilizationIsNone() {
        try (SteppedSequences s = start(Plans.direct(4, 1000, 0))) {
            s.send(sequence(1).start(), 1);
            assertThat(s.step(0)).isTrue();
        }
    }

    @Test
    void countsNullRequestsInTheBatchSizeAlone() {
        try (SteppedSequences s = start(Plans.direct(2))) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            s.send(sequence(2), 1);
            s.steps();
            ExecutionStatistics counted = s.model.meter().read().executions();
            assertThat(counted.inferenceCount()).isEqualTo(3);
            assertThat(counted.executionCount()).isEqualTo(2);
            assertThat(counted.batches()).hasSize(1);
            assertThat(counted.batches().getFirst().batchSize()).isEqualTo(2);
        }
    }

    @Test
    void refusesWhatFitsNoSequence() {
        try (SteppedSequences s = start(Plans.direct(2))) {
            s.send(sequence(7), 1)
                    .observer()
                    .assertError(
                            ErrorCode.INVALID_ARGUMENT,
                            "inference request for sequence 7 to model 'stateful' must specify the START flag on the first"
                                    + " request of the sequence");
            s.send(sequence("a b"), 1)
                    .observer()
                    .assertError(
                            ErrorCode.INVALID_ARGUMENT,
                            "inference request for sequence a b to model 'stateful' must specify the START flag on the"
                                    + " first request of the sequence");
            String noId = "inference request to model 'stateful' must specify a non-zero or non-empty correlation ID";
            s.send(sequence(0).start(), 1).observer().assertError(ErrorCode.INVALID_ARGUMENT, noId);
            s.send(sequence("").start(), 1).observer().assertError(ErrorCode.INVALID_ARGUMENT, noId);
            s.submit(s.request(1).of(1)).observer().assertError(ErrorCode.INVALID_ARGUMENT, noId);
            s.submit(s.request(1).options(sequence(1).start().options()).of(2))
                    .observer()
                    .assertError(
                            ErrorCode.INVALID_ARGUMENT,
                            "inference request to model 'stateful' must specify batch-size 1 due to requirements of"
                                    + " sequence batcher");
            s.queue().stop();
            s.send(sequence(8).start(), 1)
                    .observer()
                    .assertError(
                            ErrorCode.UNAVAILABLE,
                            "Server is stopping, scheduler for model has stopped accepting new inference requests");
        }
    }

    @Test
    void anEndedSequenceHasToStartAgain() {
        try (SteppedSequences s = start(Plans.direct(2))) {
            s.send(sequence(7).start().end(), 1);
            s.send(sequence(7), 1).observer().error(); // also while the last request waits
            s.steps();
            s.send(sequence(7), 1).observer().error();
            Sent again = s.send(sequence(7).start(), 5);
            s.steps();
            assertThat(again.sum()).isEqualTo(5);
        }
    }

    @Test
    void aStartOnALiveIdRunsAfterTheRequestsBefore() {
        try (SteppedSequences s = start(Plans.direct(2))) {
            s.send(sequence(1).start(), 1);
            Sent before = s.send(sequence(1), 2);
            Sent start = s.send(sequence(1).start(), 50);
            Sent after = s.send(sequence(1), 3);
            s.steps();
            assertThat(accumulator.batches()).containsExactly("RS1", "R1", "RS1", "R1");
            assertThat(before.sum()).isEqualTo(3);
            assertThat(start.sum()).isEqualTo(50);
            assertThat(after.sum()).isEqualTo(53);
        }
    }

    @Test
    void numbersAndTextsAreDifferentIds() {
        SequencePlan plan = Plans.direct(2, 0, 0, Plans.START, Plans.END, Plans.READY, Plans.id(DataType.BYTES));
        List<String> ids = new ArrayList<>();
        try (SteppedSequences s = new SteppedSequences(SteppedSequences.settings(2), plan, batch -> {
            MemorySegment data = batch.gather("CORRID").data();
            ids.add(new String(data.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1));
            FakeInstance.copy(batch);
        })) {
            s.send(sequence("1").start(), 1);
            s.send(sequence(1), 1).observer().error();
            s.steps();
            s.send(sequence("zwei").start(), 1);
            s.steps();
            assertThat(ids).containsExactly("\1\0\0\0" + "1", "\0\0\0\0" + "\4\0\0\0zwei");
        }
    }

    @Test
    void anIdleSequenceEnds() {
        try (SteppedSequences s = start(Plans.direct(1))) {
            s.send(sequence(1).start(), 1);
            Sent waits = s.send(sequence(2).start(), 2);
            long idle = Plans.IDLE.toNanos();
            s.advance(idle); // it has not been executed yet
            assertThat(s.queue().sequences()).isEqualTo(2);
            s.steps();
            s.advance(idle - 1);
            assertThat(waits.observer().isSilent()).isTrue();
            s.advance(1);
            s.steps();
            assertThat(waits.sum()).isEqualTo(2);
            s.send(sequence(1), 1).observer().error();
        }
    }

    @Test
    void theBacklogExpiresByTheShortestTimeout() {
        try (SteppedSequences s = start(Plans.direct(1))) {
            s.send(sequence(1).start(), 1);
            Sent first = s.send(sequence(2).start().timeoutMicros(1000), 1);
            Sent second = s.send(sequence(2).timeoutMicros(10), 1);
            Sent later = s.send(sequence(3).start().timeoutMicros(1000), 1);
            s.advance(TimeUnit.MICROSECONDS.toNanos(10));
            String text = "timeout of the corresponding sequence has been expired";
            first.observer().assertError(ErrorCode.UNAVAILABLE, text);
            second.observer().assertError(ErrorCode.UNAVAILABLE, text);
            assertThat(later.observer().isSilent()).isTrue();
            s.send(sequence(1).end(), 1);
            s.steps();
            assertThat(later.sum()).isEqualTo(1); // timeouts do not count with a slot
            s.advance(TimeUnit.MICROSECONDS.toNanos(1000));
        }
    }

    @Test
    void aCancelledRequestEndsItsSequence() {
        try (SteppedSequences s = start(Plans.direct(1))) {
            Sent before = s.send(sequence(1).start(), 1);
            Sent cancelled = s.send(sequence(1), 2);
            Sent after = s.send(sequence(1), 3);
            Sent backlog = s.send(sequence(2).start(), 4);
            cancelled.cancellation().cancel();
            cancelled.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            after.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            s.send(sequence(1), 9).observer().error();
            s.steps();
            assertThat(before.sum()).isEqualTo(1);
            assertThat(backlog.sum()).isEqualTo(4);
        }
    }

    @Test
    void aDeadlineThatPassesCancels() {
        try (SteppedSequences s = start(Plans.direct(1))) {
            Sent first = s.send(sequence(1).start().deadline(s.clock.getAsLong() + 100), 1);
            Sent second = s.send(sequence(1), 2);
            s.advance(100);
            first.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            second.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(s.queue().sequences()).isZero();
        }
    }
}
