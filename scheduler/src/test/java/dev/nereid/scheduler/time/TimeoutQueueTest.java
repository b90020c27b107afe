package dev.nereid.scheduler.time;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class TimeoutQueueTest {
    private final FakeClock clock = new FakeClock(); // overflows after a millisecond
    private final long start = clock.getAsLong();
    private final List<String> rung = new ArrayList<>();
    private final AtomicInteger earlier = new AtomicInteger();
    private final TimeoutQueue timeouts = new TimeoutQueue(earlier::incrementAndGet);
    private final Timeout a = timeouts.newTimeout(() -> rung.add("a"));
    private final Timeout b = timeouts.newTimeout(() -> rung.add("b"));

    @Test
    void runsOnceAtItsTime() {
        a.scheduleAtLatest(start + 10);

        assertThat(pass(9)).isEqualTo(1);
        assertThat(rung).isEmpty();
        assertThat(pass(1)).isEqualTo(Long.MAX_VALUE);
        assertThat(rung).containsExactly("a");
        pass(100);
        assertThat(rung).containsExactly("a");
    }

    @Test
    void runsInOrderOverAnOverflow() {
        a.scheduleAtLatest(start + 3_000_000);
        b.scheduleAtLatest(start + 500_000);

        assertThat(pass(500_000)).isEqualTo(2_500_000);
        assertThat(rung).containsExactly("b");
        pass(2_500_000);
        assertThat(rung).containsExactly("b", "a");
    }

    @Test
    void keepsTheEarliestMoment() {
        a.scheduleAtLatest(start + 10);
        a.scheduleAtLatest(start + 20);
        pass(10);
        assertThat(rung).containsExactly("a");

        a.scheduleAtLatest(start + 40);
        a.scheduleAtLatest(start + 30);
        pass(20);

        assertThat(rung).containsExactly("a", "a");
        assertThat(pass(10)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void notifiesOnlyOfEarlierTimes() {
        a.scheduleAtLatest(start + 10);
        b.scheduleAtLatest(start + 20);
        assertThat(earlier).hasValue(1);

        b.scheduleAtLatest(start + 5);

        assertThat(earlier).hasValue(2);
    }

    @Test
    void runsAtOnceForAPastTime() {
        a.scheduleAtLatest(start - 5);

        pass(0);

        assertThat(rung).containsExactly("a");
    }

    @Test
    void isSetByItsOwnAction() {
        List<Timeout> self = new ArrayList<>();
        self.add(timeouts.newTimeout(() -> {
            rung.add("self");
            self.getFirst().scheduleAtLatest(clock.getAsLong() + 7);
        }));
        self.getFirst().scheduleAtLatest(start);

        assertThat(pass(0)).isEqualTo(7);
        assertThat(pass(7)).isEqualTo(7);
        assertThat(rung).containsExactly("self", "self");
    }

    @Test
    void neverRunsOnceClosed() {
        a.scheduleAtLatest(start + 10);
        a.close();
        a.close();
        a.scheduleAtLatest(start + 10);

        assertThat(pass(10)).isEqualTo(Long.MAX_VALUE);
        assertThat(rung).isEmpty();
    }

    @Test
    void outlivesAnActionThatFails() {
        timeouts.newTimeout(() -> {
                    throw new IllegalStateException("of a test");
                })
                .scheduleAtLatest(start + 1);
        a.scheduleAtLatest(start + 1);

        pass(1);

        assertThat(rung).containsExactly("a");
    }

    @Test
    void doesNotRunAnActionAgainThatFailedByAnException() {
        timeouts.newTimeout(() -> {
                    rung.add("failing");
                    throw new IllegalStateException("of a test");
                })
                .scheduleAtLatest(start + 1);

        assertThat(pass(1)).isEqualTo(Long.MAX_VALUE);
        assertThat(rung).containsExactly("failing");
    }

    private long pass(long nanos) {
        clock.advanceNanos(nanos);
        return timeouts.runExpired(clock.getAsLong());
    }
}
