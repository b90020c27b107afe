package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Sent;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Batches that are held back until requests wait. */
final class SequenceHoldTest {
    static final List<SequencePlan> PLANS = List.of(Plans.direct(1), Plans.oldest(1, 0));

    private final Accumulator first = new Accumulator();
    private final Accumulator second = new Accumulator();

    private SteppedSequences start(SequencePlan plan, int requests, int backlogged) {
        SteppedSequences s = new SteppedSequences(SteppedSequences.settings(2), plan);
        s.queue().hold(requests, backlogged);
        s.add(first);
        s.add(second);
        return s;
    }

    @Test
    void theDirectStrategyWaitsForRequestsOfAllInstancesAndOfTheBacklogOnce() {
        try (SteppedSequences s = start(Plans.direct(1), 3, 2)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.send(sequence(3).start(), 1);
            s.send(sequence(3), 1);
            s.steps();
            assertThat(first.batches())
                    .as("two with a slot, two in the backlog")
                    .isEmpty();
            assertThat(second.batches()).isEmpty();

            s.send(sequence(1), 1);
            s.steps();
            assertThat(first.batches()).containsExactly("RS1", "R1");
            assertThat(second.batches()).containsExactly("RS2");

            s.send(sequence(2), 1);
            assertThat(s.step(1)).as("once").isTrue();
        }
    }

    @Test
    void theDirectStrategyWaitsForTheBacklog() {
        try (SteppedSequences s = start(Plans.direct(1), 1, 1)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(2).start(), 1);
            s.steps();
            assertThat(first.batches()).isEmpty();
            s.send(sequence(3).start(), 1);
            s.steps();
            assertThat(first.batches()).containsExactly("RS1");
            assertThat(second.batches()).containsExactly("RS2");
        }
    }

    @Test
    void theOldestStrategyWaitsForSequencesOfEachInstance() {
        try (SteppedSequences s = start(Plans.oldest(2, 0), 2, 9)) {
            s.send(sequence(1).start(), 1);
            s.send(sequence(1), 1);
            s.send(sequence(1), 1);
            s.send(sequence(2).start(), 1); // of the other instance
            s.steps();
            assertThat(first.batches()).as("one request of a sequence counts").isEmpty();

            s.send(sequence(3).start(), 1);
            s.steps();
            assertThat(first.batches()).containsExactly("RS1 RS3", "R1", "R1");
            assertThat(second.batches()).isEmpty();

            s.send(sequence(4).start(), 1);
            s.steps();
            assertThat(second.batches()).containsExactly("RS2 RS4");
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void anEndOfTheHoldLetsRequestsPass(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 5, 0)) {
            Sent held = s.send(sequence(1).start(), 4);
            assertThat(s.step(0)).isFalse();
            s.queue().endHold();
            s.steps();
            assertThat(held.sum()).isEqualTo(4);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aStopLetsRequestsPass(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 5, 0)) {
            Sent held = s.send(sequence(1).start(), 4);
            s.queue().stop();
            s.steps();
            assertThat(held.sum()).isEqualTo(4);
        }
    }

    @ParameterizedTest
    @FieldSource("PLANS")
    void aReloadLetsRequestsPass(SequencePlan plan) {
        try (SteppedSequences s = start(plan, 5, 0)) {
            Sent held = s.send(sequence(1).start(), 4);
            assertThat(s.queue().whenSequencesEnd(() -> {})).isTrue();
            s.steps();
            assertThat(held.sum()).isEqualTo(4);
        }
    }
}
