package dev.nereid.scheduler.sequence;

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

    @Property(tries = 200)
    void oldestSequencesAreAnsweredAsIfAlone(@ForAll long seed) {
        new SequenceSchedules(seed, false).run(STEPS);
    }
}
