package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.FailingTimer;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.spi.Sequence;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class SequenceTimesTest {
    private static final long IDLE = 1000;

    private final QueueLock lock = new QueueLock();
    private final FailingTimer timer = new FailingTimer();
    private final SequenceTimes times = new SequenceTimes(lock, timer, IDLE, () -> {});

    private void locked(Runnable action) {
        lock.lock();
        try {
            action.run();
        } finally {
            lock.unlock();
        }
    }

    @Test
    void manyThatExpireAtTheSameMomentAreHandledOnceEach() {
        locked(() -> {
            for (int id = 1; id <= 1000; id++) {
                times.addIdle(new LiveSequence(new Sequence.Id.Numeric(id), null, null), 0);
            }
        });
        assertThat(timer.scheduled()).isEqualTo(1);

        List<LiveSequence> expired = new ArrayList<>();
        locked(() -> times.expire(IDLE, expired::add));
        assertThat(expired).hasSize(1000);
        assertThat(times.idle().first()).isNull();
        assertThat(timer.scheduled()).as("nothing is left").isEqualTo(1);
    }

    @Test
    void whatIsIdleAgainWaitsForTheNextTimeout() {
        long jump = Long.MAX_VALUE / 2;
        locked(() -> {
            for (int id = 1; id <= 10; id++) {
                times.addIdle(new LiveSequence(new Sequence.Id.Numeric(id), null, null), 0);
            }
        });
        List<LiveSequence> expired = new ArrayList<>();
        locked(() -> times.expire(jump, sequence -> {
            expired.add(sequence);
            times.addIdle(sequence, jump);
        }));
        assertThat(expired).hasSize(10).doesNotHaveDuplicates();
        assertThat(timer.scheduled()).isEqualTo(2);
    }

    @Test
    void schedulesTheNextTimeAfterAFailure() {
        timer.failNext();
        locked(() -> times.addIdle(new LiveSequence(new Sequence.Id.Numeric(1), null, null), 0));
        assertThat(timer.scheduled()).isZero();

        locked(() -> times.addIdle(new LiveSequence(new Sequence.Id.Numeric(2), null, null), 1));

        assertThat(timer.scheduled()).isEqualTo(1);
    }
}
