package dev.nereid.backend.python.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ReadTurnsTest {
    private static final Runnable END = new Thread();

    private static final long LIMIT = TimeUnit.SECONDS.toNanos(30);

    private final BlockingQueue<Runnable> frames = new LinkedBlockingQueue<>();
    private final AtomicInteger receivers = new AtomicInteger();
    private final AtomicBoolean awaited = new AtomicBoolean();
    private final ReadTurns turns = new ReadTurns(awaited::get);
    private final BooleanSupplier receive = this::receive;

    private boolean receive() {
        assertThat(receivers.incrementAndGet()).isEqualTo(1);
        try {
            Runnable frame = frames.take();
            if (END.equals(frame)) {
                return false;
            }
            frame.run();
            return true;
        } catch (InterruptedException e) {
            return false;
        } finally {
            receivers.decrementAndGet();
        }
    }

    private Thread startOwner() {
        return Thread.ofPlatform().daemon().start(() -> turns.receiveAlways(receive));
    }

    @Test
    void oneThreadReceivesAtATimeAndNoFrameIsLost() throws InterruptedException {
        Thread owner = startOwner();
        AtomicInteger others = new AtomicInteger();
        int executions = 20_000;
        for (int i = 0; i < executions; i++) {
            AtomicBoolean done = new AtomicBoolean();
            turns.begin();
            if (i % 3 == 0) {
                awaited.set(i % 2 == 0);
                frames.add(others::incrementAndGet);
            }
            frames.add(() -> {
                done.set(true);
                turns.wake();
            });
            turns.receiveUntil(done::get, receive, LIMIT);
            turns.end();
            assertThat(done).isTrue();
        }
        frames.add(END);
        owner.join(Duration.ofSeconds(30));
        assertThat(owner.isAlive()).isFalse();
        assertThat(others.get()).isEqualTo((executions + 2) / 3);
    }

    @Test
    void theOwnerReceivesWhileNothingIsExecuted() throws InterruptedException {
        Thread owner = startOwner();
        for (int i = 0; i < 3; i++) {
            AtomicBoolean done = new AtomicBoolean();
            turns.begin();
            frames.add(() -> {
                done.set(true);
                turns.wake();
            });
            turns.receiveUntil(done::get, receive, LIMIT);
            turns.end();
            LinkedBlockingQueue<Thread> received = new LinkedBlockingQueue<>();
            frames.add(() -> received.add(Thread.currentThread()));
            assertThat(received.poll(30, TimeUnit.SECONDS)).isEqualTo(owner);
        }
        frames.add(END);
        owner.join(Duration.ofSeconds(30));
    }

    @Test
    void theExecutingThreadReceivesItselfAfterAnother() {
        Thread owner = startOwner();
        Thread self = Thread.currentThread();
        AtomicInteger mine = new AtomicInteger();
        for (int i = 0; i < 100; i++) {
            AtomicBoolean done = new AtomicBoolean();
            turns.begin();
            frames.add(() -> {
                if (self.equals(Thread.currentThread())) {
                    mine.incrementAndGet();
                }
                done.set(true);
                turns.wake();
            });
            turns.receiveUntil(done::get, receive, LIMIT);
            turns.end();
        }
        frames.add(END);
        assertThat(owner).isNotEqualTo(self);
        assertThat(mine.get()).isGreaterThan(50);
    }

    @Test
    void anEndWakesTheExecutingThread() {
        Thread owner = startOwner();
        turns.begin();
        frames.add(END);
        turns.receiveUntil(() -> false, receive, LIMIT);
        turns.end();
        assertThat(owner).isNotNull();
    }

    @Test
    void aWantedFrameIsReceivedAtOnce() throws InterruptedException {
        startOwner();
        LinkedBlockingQueue<String> received = new LinkedBlockingQueue<>();
        turns.want();
        frames.add(() -> received.add("one"));
        assertThat(received.poll(30, TimeUnit.SECONDS)).isEqualTo("one");
        frames.add(END);
    }

    @Test
    void theExecutingThreadGivesUpAfterItsLimit() {
        Thread owner = startOwner();
        turns.begin();
        turns.receiveUntil(() -> false, () -> true, 1);
        turns.end();
        assertThat(turns.isEnded()).isFalse();
        frames.add(END);
        assertThat(owner).isNotNull();
    }
}
