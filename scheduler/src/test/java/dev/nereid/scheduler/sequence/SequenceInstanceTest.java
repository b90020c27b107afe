package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.EndedSequence;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** The wake-ups of an instance's own thread. */
final class SequenceInstanceTest {
    private final QueueLock lock = new QueueLock();
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
        public boolean isEmpty() {
            return !ready;
        }

        @Override
        public boolean hasBatch(long now, boolean hurry) {
            return ready;
        }

        @Override
        public long waitNanos(long now) {
            return 0;
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
        ModelScope model = Scopes.of(SteppedSequences.settings(2), memory, clock);
        SequenceTable table = new SequenceTable(
                lock,
                clock,
                new TimeoutQueue(() -> {}),
                Duration.ofMinutes(1).toNanos(),
                model.meter().sequenceEnds(),
                () -> {});
        SequenceInstance[] instance = new SequenceInstance[1];
        instance[0] = new SequenceInstance(
                table,
                lock,
                clock,
                new Slots(2),
                new Strategy(() -> {
                    lock.lock();
                    try {
                        ready = true; // a request comes meanwhile
                        instance[0].source().wake(clock.getAsLong());
                    } finally {
                        lock.unlock();
                    }
                    LockSupport.parkNanos(1); // uses up the wake-up, if there is one
                }),
                true,
                null);
        BatchSource source = instance[0].source();
        InstanceHandle handle = source.register(() -> {}, () -> 0);
        CompletableFuture<Boolean> taken = new CompletableFuture<>();

        Thread.ofPlatform().daemon().start(() -> taken.complete(source.take(handle)));

        assertThat(taken.get(20, TimeUnit.SECONDS)).isTrue();
        assertThat(handle.ended()).hasSize(1);
        table.close();
        memory.close();
    }
}
