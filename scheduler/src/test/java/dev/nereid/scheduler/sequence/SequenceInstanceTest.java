package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The wake-ups of an instance's own thread. */
final class SequenceInstanceTest {
    private final QueueLock lock = new QueueLock();
    private final FakeClock clock = new FakeClock();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelScope model = Scopes.of(SteppedSequences.settings(2), memory, clock);
    private final SequenceTable table = new SequenceTable(
            lock,
            clock,
            new TimeoutQueue(() -> {}),
            Duration.ofMinutes(1).toNanos(),
            model.meter().sequenceEnds(),
            () -> {});
    private boolean ready;
    private boolean waiting;
    private long waitNanos;

    /** Has nothing at first, and leaves an action for when the lock is released, as the release of a state is one. */
    private final class Strategy implements SlotStrategy {
        private final Runnable action;
        private boolean acted;

        Strategy(Runnable action) {
            this.action = action;
        }

        @Override
        public void changed(LiveSequence sequence, long now) {}

        @Override
        public void endHold() {}

        @Override
        public boolean isEmpty() {
            return !ready && !waiting;
        }

        @Override
        public boolean hasBatch(long now, boolean hurry) {
            return ready;
        }

        @Override
        public long waitNanos(long now) {
            return waitNanos;
        }

        @Override
        public void take(InstanceHandle handle, long now, boolean hurry) {
            if (ready) {
                handle.ended().add(new InstanceHandle.EndedSequence(new Sequence.Id.Numeric(1), SequenceEnd.IDLE));
            } else if (!acted) {
                acted = true;
                lock.later(action);
            }
        }
    }

    @Test
    void anActionThatWaitsUsesUpNoWakeUp() throws Exception {
        BatchSource[] sources = new BatchSource[1];
        sources[0] = source(() -> {
            locked(() -> {
                ready = true; // a request comes meanwhile
                sources[0].wake(clock.getAsLong());
            });
            LockSupport.parkNanos(1); // uses up the wake-up, if there is one
        });
        BatchSource source = sources[0];
        InstanceHandle handle = source.register(() -> {}, () -> 0);
        CompletableFuture<Boolean> taken = new CompletableFuture<>();

        Thread.ofPlatform().daemon().start(() -> taken.complete(source.take(handle)));

        assertThat(taken.get(20, TimeUnit.SECONDS)).isTrue();
        assertThat(handle.ended()).hasSize(1);
    }

    /** As a request does that waited for a slot for longer. */
    @Test
    void aRequestThatMayWaitLessWakesTheThread() throws Exception {
        BatchSource source = source(() -> {});
        InstanceHandle handle = source.register(() -> {}, () -> 0);
        waiting = true;
        waitNanos = Duration.ofHours(1).toNanos();
        CompletableFuture<Boolean> taken = new CompletableFuture<>();
        Thread own = Thread.ofPlatform().daemon().start(() -> taken.complete(source.take(handle)));
        Threads.await("asleep", () -> own.getState() == Thread.State.TIMED_WAITING);

        locked(() -> {
            waitNanos = 1;
            source.wake(clock.getAsLong());
        });
        locked(() -> ready = true); // a thread that sleeps on sees it in an hour

        assertThat(taken.get(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aStopStartsTheThreadForRequestsThatWereHeld() {
        BatchSource source = source(() -> {});
        InstanceHandle handle = source.register(() -> {}, () -> 0);
        List<String> starts = new ArrayList<>();
        source.addUnstarted(handle, () -> starts.add("start"));
        assertThat(starts).isEmpty();

        locked(() -> {
            ready = true;
            table.stop();
        });

        assertThat(starts).containsExactly("start");
    }

    private BatchSource source(Runnable action) {
        return new SequenceInstance(table, lock, clock, new Slots(2), new Strategy(action), true, null).source();
    }

    private void locked(Runnable action) {
        lock.lock();
        try {
            action.run();
        } finally {
            lock.unlock();
        }
    }

    @AfterEach
    void end() {
        table.close();
        memory.close();
    }
}
