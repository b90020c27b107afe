package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Ends of sequences without their last request, for both strategies. */
final class SequenceEndTest {
    static final List<SequencePlan> PLANS = List.of(Plans.direct(2), Plans.oldest(2, 0));

    private static SteppedSequences start(SequencePlan plan, int instances) {
        FakeInstance.Execution[] backends = new FakeInstance.Execution[instances];
        Arrays.fill(backends, (FakeInstance.Execution) FakeInstance::copy);
        return new SteppedSequences(SteppedSequences.settings(2), plan, backends);
    }

    private static String ended(long id, SequenceEnd reason) {
        return new Sequence.Id.Numeric(id) + " " + reason;
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void theBackendIsToldOnceAndWhy(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            s.advance(Plans.IDLE.toNanos());
            s.steps();
            s.send(sequence(2).start(), 1);
            s.steps();
            s.send(sequence(2), 1).cancellation().cancel();
            s.steps();
            s.send(sequence(3).start(), 1);
            s.send(sequence(3).start(), 1);
            s.send(sequence(3).end(), 1);
            s.steps();
            s.send(sequence(4).start(), 1);
            s.steps();
            s.queue().stop();
            s.steps();
            assertThat(s.instances.getFirst().ended())
                    .containsExactly(
                            ended(1, SequenceEnd.IDLE),
                            ended(2, SequenceEnd.CANCELLED),
                            ended(3, SequenceEnd.REPLACED),
                            ended(4, SequenceEnd.UNLOADED));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aSequenceThatStartsAgainElsewhereEndsAfterItsRequests(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            Sent waiting = s.send(sequence(1), 2);
            Sent behind = s.send(sequence(3).start(), 3); // in the backlog
            for (int id = 1; id <= 4; id++) {
                s.queue().replaceSequence(new Sequence.Id.Numeric(id));
                assertThat(s.queue().hasSequence(new Sequence.Id.Numeric(id))).isFalse();
            }
            s.steps();
            assertThat(waiting.sum()).isEqualTo(2);
            assertThat(behind.sum()).isEqualTo(3);
            assertThat(s.instances.getFirst().ended())
                    .containsExactlyInAnyOrder(
                            ended(1, SequenceEnd.REPLACED),
                            ended(2, SequenceEnd.REPLACED),
                            ended(3, SequenceEnd.REPLACED));
            assertThat(s.queue().backlog()).isZero();
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void theBackendIsNotToldOfWhatItNeverSaw(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1).cancellation().cancel();
            s.send(sequence(1).start().end(), 1);
            s.send(sequence(2).start(), 1);
            s.send(sequence(3).start(), 1).cancellation().cancel(); // in the backlog
            s.send(sequence(2).end(), 1);
            s.steps();
            assertThat(s.instances.getFirst().ended()).isEmpty();
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aCancellationAndTheIdleTimeFreeASlotOnce(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            for (int id = 1; id <= 2; id++) {
                s.send(sequence(id).start(), id);
            }
            s.steps();
            Sent waiting = s.send(sequence(1), 1);
            s.clock.advanceNanos(Plans.IDLE.toNanos());
            waiting.cancellation().cancel(); // and then the timer
            s.advance(0);
            s.advance(Plans.IDLE.toNanos());
            s.steps();
            assertThat(s.instances.getFirst().ended())
                    .containsExactlyInAnyOrder(ended(1, SequenceEnd.CANCELLED), ended(2, SequenceEnd.IDLE));
            for (int id = 11; id <= 13; id++) {
                s.send(sequence(id).start(), id);
            }
            assertThat(s.queue().backlog()).isEqualTo(1);
            s.send(sequence(11).end(), 1);
            s.steps();
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aSequenceThatIsExecutedIsNotIdle(SequencePlan plan) {
        SteppedSequences[] inside = new SteppedSequences[1];
        try (SteppedSequences s = new SteppedSequences(SteppedSequences.settings(2), plan, batch -> {
            inside[0].advance(3 * Plans.IDLE.toNanos());
            FakeInstance.copy(batch);
        })) {
            inside[0] = s;
            s.send(sequence(1).start(), 1);
            s.step(0);
            Sent next = s.send(sequence(1), 2);
            s.step(0);
            assertThat(next.sum()).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aSequenceWithAnOpenSenderIsNotIdle(SequencePlan plan) {
        List<ResponseSender> senders = new ArrayList<>();
        try (SteppedSequences s = new SteppedSequences(
                SteppedSequences.settings(2),
                plan,
                batch -> batch.requests().forEach(request -> senders.add(request.sender())))) {
            Sequence.Id id = new Sequence.Id.Numeric(1);
            Sent late = s.send(sequence(1).start(), 1);
            s.steps();
            for (int i = 0; i < 3; i++) {
                s.advance(Plans.IDLE.toNanos());
            }
            s.advance(Plans.IDLE.toNanos() - 1);
            senders.getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "too late"));
            late.observer().assertError(ErrorCode.NOT_FOUND, "too late");
            s.advance(1);
            s.advance(Plans.IDLE.toNanos() - 1); // the idle time counts from the end of the sender
            assertThat(s.queue().hasSequence(id)).isTrue();

            s.advance(1);
            assertThat(s.queue().hasSequence(id)).isFalse();
            s.steps();
            assertThat(s.instances.getFirst().ended()).containsExactly(ended(1, SequenceEnd.IDLE));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void theSequencesOfAnInstanceThatIsGoneEndAlone(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 2)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            Sent lost = s.send(sequence(1), 2);
            Sent other = s.send(sequence(2), 3);
            s.workers.getFirst().retire();
            s.lose(0);
            lost.observer()
                    .assertError(
                            ErrorCode.UNAVAILABLE,
                            "sequence 1 of model 'stateful' version 1 has ended: its instance failed beyond repair;"
                                    + " start the sequence again");
            s.send(sequence(1), 1).observer().error();
            s.steps();
            assertThat(other.sum()).isEqualTo(3);
            Sent again = s.send(sequence(1).start(), 4);
            s.steps();
            assertThat(again.sum()).isEqualTo(4);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aRetiredInstanceKeepsItsSequencesAndGetsNoOthers(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 2)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            s.workers.getFirst().retire();
            for (int id = 2; id <= 4; id++) {
                s.send(sequence(id).start(), id);
            }
            assertThat(s.queue().backlog()).isEqualTo(1);
            s.send(sequence(1), 2);
            s.send(sequence(1).end(), 3);
            s.steps();
            assertThat(s.queue().backlog()).isEqualTo(1);
            assertThat(s.instances.getFirst().batches()).hasSize(3);
            s.send(sequence(2).end(), 2);
            s.steps();
            assertThat(s.queue().backlog()).isZero();
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aCancelledRequestEndsItsSequenceAlsoIfAnotherOneOfItsIdStarts(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            Sent cancelled = s.send(sequence(1), 2);
            Sent behind = s.send(sequence(1), 3);
            Sent dropped = s.send(sequence(1).start(), 4);
            Sent next = s.send(sequence(1).start().end(), 5);
            cancelled.cancellation().cancel();
            dropped.cancellation().cancel();
            behind.observer().assertError(ErrorCode.CANCELLED, "request was cancelled");
            s.steps();
            assertThat(next.sum()).isEqualTo(5);
            assertThat(s.instances.getFirst().ended()).containsExactly(ended(1, SequenceEnd.CANCELLED));
            assertThat(s.queue().sequenceUse().orElseThrow().ended())
                    .isEqualTo(Map.of(SequenceEndReason.CANCELLED, 2L, SequenceEndReason.END, 1L));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aStartThatIsCancelledBeforeItIsQueuedEndsTheOlderSequence(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            Sent waiting = s.send(sequence(1), 2);
            s.sendCancelled(sequence(1).start(), s.request(3));
            Sent behind = s.send(sequence(1), 4);
            behind.observer().error();
            s.steps();
            assertThat(waiting.sum()).isEqualTo(2);
            assertThat(s.instances.getFirst().ended()).containsExactly(ended(1, SequenceEnd.CANCELLED));
            assertThat(s.queue().sequences()).isZero();
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aStartThatIsCancelledBeforeItIsQueuedLeavesNoSequence(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.sendCancelled(sequence(1).start(), s.request(3))
                    .observer()
                    .assertError(ErrorCode.CANCELLED, "request was cancelled");
            assertThat(s.queue().sequences()).isZero();
            s.send(sequence(1), 4).observer().error();
        }
    }

    /** Such requests say nothing about the load of the model. */
    @ParameterizedTest
    @FieldSource("PLANS")
    void aMistakeOfAClientIsARefusalAndNoFailure(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1), 1).observer().error(); // it has not started
            s.send(sequence(0).start(), 1).observer().error();
            s.send(sequence("").start(), 1).observer().error();
            s.submit(s.request(1).of(1)).observer().error(); // no sequence
            s.submit(s.request(1).options(sequence(1).start().options()).of(2))
                    .observer()
                    .error(); // two rows
            assertThat(s.refusals.refused(RequestProtocol.EMBEDDED, RefusalCause.INVALID))
                    .isEqualTo(5);
            assertThat(s.model.meter().read().failures()).isEmpty();
            s.queue().stop();
            s.send(sequence(1).start(), 1).observer().error();
            assertThat(s.model.meter().read().failures()).isEqualTo(Map.of(FailureReason.REJECTED, 1L));
        }
    }

    @Test
    void anIterativeRequestThatIsCancelledBeforeItIsQueuedLeavesTheOneOfItsId() {
        try (SteppedSequences s = start(Plans.iterative(Plans.oldest(2, 0)), 1)) {
            Sent first = s.send(sequence(1).start(), 1);
            s.sendCancelled(sequence(1).start(), s.request(2));
            Sent third = s.send(sequence(1).start(), 3);
            s.steps();
            assertThat(first.sum()).isEqualTo(1);
            assertThat(third.sum()).isEqualTo(3);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aFailureAtTheEndOfOneExecutionLeavesTheOthersOfTheBatch(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 2);
            s.failClockIn("becameFree");
            s.steps();
            Sent one = s.send(sequence(1).end(), 3);
            Sent two = s.send(sequence(2).end(), 4);
            s.steps();
            assertThat(one.sum()).isEqualTo(3);
            assertThat(two.sum()).isEqualTo(4);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aStartThatFailsLeavesNoSequence(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 1)) {
            for (String method : List.of("add", "serve")) {
                s.failClockIn(method);
                s.send(sequence(1).start(), 1).observer().error();
                assertThat(s.queue().sequences()).isZero();
                assertThat(s.queue().sequenceUse().orElseThrow().slotsUsed()).isZero();
            }
            Sent again = s.send(sequence(1).start().end(), 2);
            s.steps();
            assertThat(again.sum()).isEqualTo(2);
        }
    }

    @Test
    void manySequencesExpireTogetherAfterAJumpOfTheClock() {
        int many = 500;
        try (SteppedSequences s = start(Plans.oldest(many, 0), 1)) {
            for (int id = 1; id <= many; id++) {
                s.send(sequence(id).start(), 1);
                s.send(sequence(many + id).start().timeoutMicros(Plans.IDLE.toMillis() * 2000), 1); // in the backlog
            }
            s.steps();
            s.advance(1000 * Plans.IDLE.toNanos()); // the slots are free then
            s.steps();
            assertThat(s.instances.getFirst().ended()).hasSize(many);
            s.advance(Plans.IDLE.toNanos());
            s.steps();
            assertThat(s.queue().sequenceUse().orElseThrow().ended())
                    .isEqualTo(Map.of(SequenceEndReason.IDLE, 2L * many));
            assertThat(s.queue().sequences()).isZero();
        }
    }
}
