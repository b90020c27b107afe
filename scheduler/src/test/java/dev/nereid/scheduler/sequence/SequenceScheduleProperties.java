package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/** For any schedule, each sequence is answered as if it were alone, and nothing is left. */
@Tag("slow")
final class SequenceScheduleProperties {
    private static final int STEPS = 400;

    @Property(tries = 200)
    void directSequencesAreAnsweredAsIfAlone(@ForAll long seed) {
        new SequenceSchedules(seed, true).run(STEPS);
    }

    /** The queues of sequences before they shared the instances' wake-ups with the other queues are the oracle. */
    @Property(tries = 400)
    void sequencesAreScheduledAsBefore(@ForAll long seed, @ForAll boolean direct) {
        SequenceSchedules now = new SequenceSchedules(seed, direct);
        SequenceSchedules before = new SequenceSchedules(seed, direct, dev.nereid.scheduler.oracle.SequenceQueue::new);
        now.run(STEPS);
        before.run(STEPS);
        assertThat(now.trace()).isEqualTo(before.trace());
    }

    @Property(tries = 200)
    void oldestSequencesAreAnsweredAsIfAlone(@ForAll long seed) {
        new SequenceSchedules(seed, false).run(STEPS);
    }
}
