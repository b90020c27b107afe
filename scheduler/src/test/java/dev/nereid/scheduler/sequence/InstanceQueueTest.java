package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.queue.EndedSequence;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** The wake-ups of an instance's own thread. */
final class InstanceQueueTest {
    private final SequenceLock lock = new SequenceLock();
    private final FakeClock clock = new FakeClock();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private boolean ready;

    /** Has nothing at first, and leaves an action for when the lock is released, as the release of a state is one. */
    private final class Strategy implements SlotStrategy {
        private final Runnable action;

        Strategy(Runnable action) {
            this.action = action;
        }

        @Override
        public void changed(LiveSequence sequence, long now) {}

        @Override
        public void endHold() {}

        @Override
        public boolean hasBatch(long now, boolean hurry) {
            return ready;
        }

        @Override
        public long waitNanos(long now) {
            return ready ? 0 : NOTHING_WAITS;
        }

        @Override
        public void take(InstanceHandle handle, long now, boolean hurry) {
            if (ready) {
                handle.ended().add(new EndedSequence(new Sequence.Id.Numeric(1), SequenceEnd.IDLE));
            } else {
                lock.later(action);
            }
        }
    }

    @Test
    void anActionThatWaitsUsesUpNoWakeUp() throws Exception {
        SequencePlan plan = Plans.direct(2);
        ModelScope model = Scopes.of(SteppedSequences.settings(2), memory, clock);
        SequenceTimes times = new SequenceTimes(lock, new TimeoutQueue(() -> {}), plan.maxIdleNanos(), () -> {});
        SequenceTable table =
                new SequenceTable(lock, clock, times, model.meter().sequenceEnds(), () -> {});
        InstanceQueue[] queue = new InstanceQueue[1];
        queue[0] = new InstanceQueue(
                table,
                lock,
                clock,
                new Slots(2),
                new Strategy(() -> {
                    lock.lock();
                    try {
                        ready = true; // a request comes meanwhile
                        queue[0].wakeForWork(clock.getAsLong());
                    } finally {
                        lock.unlock();
                    }
                    LockSupport.parkNanos(1); // uses up the wake-up, if there is one
                }),
                new InstanceQueue.Uses(true, null));
        InstanceHandle handle = queue[0].register(() -> {}, () -> 0);
        CompletableFuture<Boolean> taken = new CompletableFuture<>();

        Thread.ofPlatform().daemon().start(() -> taken.complete(queue[0].take(handle)));

        assertThat(taken.get(20, TimeUnit.SECONDS)).isTrue();
        assertThat(handle.ended()).hasSize(1);
        times.close();
        memory.close();
    }
}
