package dev.nereid.scheduler.time;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class AlarmsTest {
    private final FakeClock clock = new FakeClock(); // overflows after a millisecond
    private final long start = clock.getAsLong();
    private final List<String> rung = new ArrayList<>();
    private final AtomicInteger earlier = new AtomicInteger();
    private final Alarms alarms = new Alarms(earlier::incrementAndGet);
    private final Alarm a = alarms.alarm(() -> rung.add("a"));
    private final Alarm b = alarms.alarm(() -> rung.add("b"));

    @Test
    void ringsWhenDueAndOnce() {
        a.atLatest(start + 10);

        assertThat(pass(9)).isEqualTo(1);
        assertThat(rung).isEmpty();
        assertThat(pass(1)).isEqualTo(Long.MAX_VALUE);
        assertThat(rung).containsExactly("a");
        pass(100);
        assertThat(rung).containsExactly("a");
    }

    @Test
    void ringsInTheOrderOfTheMomentsOverAnOverflow() {
        a.atLatest(start + 3_000_000);
        b.atLatest(start + 500_000);

        assertThat(pass(500_000)).isEqualTo(2_500_000);
        assertThat(rung).containsExactly("b");
        pass(2_500_000);
        assertThat(rung).containsExactly("b", "a");
    }

    @Test
    void keepsTheEarliestMoment() {
        a.atLatest(start + 10);
        a.atLatest(start + 20);
        pass(10);
        assertThat(rung).containsExactly("a");

        a.atLatest(start + 40);
        a.atLatest(start + 30);
        pass(20);

        assertThat(rung).containsExactly("a", "a");
        assertThat(pass(10)).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void tellsWhoSleepsOnlyOfEarlierMoments() {
        a.atLatest(start + 10);
        b.atLatest(start + 20);
        assertThat(earlier).hasValue(1);

        b.atLatest(start + 5);

        assertThat(earlier).hasValue(2);
    }

    @Test
    void ringsAtOnceForAMomentThatHasPassed() {
        a.atLatest(start - 5);

        pass(0);

        assertThat(rung).containsExactly("a");
    }

    @Test
    void isSetByItsOwnAction() {
        List<Alarm> self = new ArrayList<>();
        self.add(alarms.alarm(() -> {
            rung.add("self");
            self.getFirst().atLatest(clock.getAsLong() + 7);
        }));
        self.getFirst().atLatest(start);

        assertThat(pass(0)).isEqualTo(7);
        assertThat(pass(7)).isEqualTo(7);
        assertThat(rung).containsExactly("self", "self");
    }

    @Test
    void neverRingsOnceClosed() {
        a.atLatest(start + 10);
        a.close();
        a.close();
        a.atLatest(start + 10);

        assertThat(pass(10)).isEqualTo(Long.MAX_VALUE);
        assertThat(rung).isEmpty();
    }

    @Test
    void outlivesAnActionThatFails() {
        alarms.alarm(() -> {
                    throw new IllegalStateException("wanted by a test");
                })
                .atLatest(start + 1);
        a.atLatest(start + 1);

        pass(1);

        assertThat(rung).containsExactly("a");
    }

    private long pass(long nanos) {
        clock.advanceNanos(nanos);
        return alarms.ring(clock.getAsLong());
    }
}
