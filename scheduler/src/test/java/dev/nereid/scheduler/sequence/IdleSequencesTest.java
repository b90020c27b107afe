package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.FailingTimer;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.statistics.SequenceEnds;
import dev.nereid.spi.Sequence;
import dev.nereid.testkit.FakeClock;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The timeout of sequences without a request. */
final class IdleSequencesTest {
    private static final long IDLE = 1000;

    private final QueueLock lock = new QueueLock();
    private final FailingTimer timer = new FailingTimer();
    private final FakeClock clock = new FakeClock();
    private final SequenceEnds ends = new SequenceEnds();
    private final SequenceTable table = new SequenceTable(lock, clock, timer, IDLE, ends, () -> {});

    private void addIdle(int count) {
        lock.lock();
        try {
            for (int id = 1; id <= count; id++) {
                table.becameFree(new LiveSequence(new Sequence.Id.Numeric(id), null, null));
            }
        } finally {
            lock.unlock();
        }
    }

    @Test
    void manyThatExpireAtTheSameMomentAreHandledOnceEach() {
        addIdle(1000);
        assertThat(timer.scheduled()).isEqualTo(1);

        clock.advanceNanos(IDLE);
        timer.fire();

        assertThat(ends.counts()).isEqualTo(Map.of(SequenceEndReason.IDLE, 1000L));
        assertThat(timer.scheduled()).as("nothing is left").isEqualTo(1);
    }

    @Test
    void oneThatIsNotExpiredWaitsForTheNextTimeout() {
        addIdle(10);
        clock.advanceNanos(1);
        addIdle(10);

        clock.advanceNanos(IDLE - 1);
        timer.fire();

        assertThat(ends.counts()).isEqualTo(Map.of(SequenceEndReason.IDLE, 10L));
        assertThat(timer.scheduled()).isEqualTo(2);
    }

    @Test
    void schedulesTheNextTimeAfterAFailure() {
        timer.failNext();
        addIdle(1);
        assertThat(timer.scheduled()).isZero();

        clock.advanceNanos(1);
        addIdle(1);

        assertThat(timer.scheduled()).isEqualTo(1);
    }
}
