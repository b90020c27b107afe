package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.queue.SequenceUse;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The numbers of sequences, for both strategies. */
final class SequenceUseTest {
    static final List<SequencePlan> PLANS = List.of(Plans.direct(2), Plans.oldest(2, 0));

    private static SteppedSequences start(SequencePlan plan) {
        return new SteppedSequences(SteppedSequences.settings(2), plan, FakeInstance::copy, FakeInstance::copy);
    }

    private static void assertUse(SteppedSequences s, int live, int backlog, int used, int slots) {
        SequenceUse use = s.queue().sequenceUse().orElseThrow();
        assertThat(List.of(use.live(), use.backlog(), use.slotsUsed(), use.slots()))
                .as("live, backlog, slots used, slots")
                .containsExactly(live, backlog, used, slots);
    }

    private static Map<SequenceEndReason, Long> ended(SteppedSequences s) {
        return s.queue().sequenceUse().orElseThrow().ended();
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void countsSequencesAndSlots(SequencePlan plan) {
        try (SteppedSequences s = start(plan)) {
            assertUse(s, 0, 0, 0, 4);
            for (int id = 1; id <= 5; id++) {
                s.send(sequence(id).start(), id);
            }
            assertUse(s, 5, 1, 4, 4);
            s.send(sequence(1).end(), 1);
            assertUse(s, 5, 1, 4, 4);
            s.steps();
            assertUse(s, 4, 0, 4, 4);
            assertThat(ended(s)).containsExactly(Map.entry(SequenceEndReason.END, 1L));
            s.queue().stop();
            s.steps();
            assertUse(s, 0, 0, 0, 0);
            assertThat(ended(s))
                    .containsOnly(Map.entry(SequenceEndReason.END, 1L), Map.entry(SequenceEndReason.UNLOADED, 4L));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void countsEachEndOnceByItsReason(SequencePlan plan) {
        try (SteppedSequences s = start(plan)) {
            s.send(sequence(1).start(), 1);
            s.steps();
            s.advance(Plans.IDLE.toNanos());
            s.send(sequence(2).start(), 1);
            s.steps();
            s.send(sequence(2), 1).cancellation().cancel();
            s.send(sequence(3).start(), 1);
            s.send(sequence(3).start().end(), 1);
            s.steps();
            assertThat(ended(s))
                    .containsOnly(
                            Map.entry(SequenceEndReason.IDLE, 1L),
                            Map.entry(SequenceEndReason.CANCELLED, 1L),
                            Map.entry(SequenceEndReason.REPLACED, 1L),
                            Map.entry(SequenceEndReason.END, 1L));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void countsASequenceThatWasReplacedBeforeItsFirstRequest(SequencePlan plan) {
        try (SteppedSequences s = start(plan)) {
            var first = s.send(sequence(1).start(), 1);
            s.send(sequence(1).start(), 2);
            s.send(sequence(1).end(), 3);
            first.cancellation().cancel();
            s.steps();
            assertThat(ended(s))
                    .containsOnly(Map.entry(SequenceEndReason.CANCELLED, 1L), Map.entry(SequenceEndReason.END, 1L));
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void countsWhatExpiresInTheBacklogAndWithItsInstance(SequencePlan plan) {
        try (SteppedSequences s = start(plan)) {
            for (int id = 1; id <= 4; id++) {
                s.send(sequence(id).start(), id);
            }
            s.send(sequence(5).start().timeoutMicros(1), 5).observer();
            s.advance(1000);
            assertThat(ended(s)).containsExactly(Map.entry(SequenceEndReason.EXPIRED, 1L));
            s.workers.getFirst().retire();
            s.lose(0);
            s.steps();
            assertThat(ended(s))
                    .containsOnly(
                            Map.entry(SequenceEndReason.EXPIRED, 1L), Map.entry(SequenceEndReason.INSTANCE_LOST, 2L));
            assertUse(s, 2, 0, 2, 2);
        }
    }
}
