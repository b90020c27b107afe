package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RestartsTest {
    private final FakeClock clock = new FakeClock();
    private final Restarts restarts =
            new Restarts(count -> Duration.ofSeconds(Math.min(60, 2L << Math.min(count, 10))), clock);

    private void diesAfter(long seconds) {
        restarts.serving();
        clock.advanceNanos(TimeUnit.SECONDS.toNanos(seconds));
        restarts.ended();
    }

    @Test
    void pausesDoubleUntilAMinute() {
        List<Long> seconds = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            diesAfter(1);
            assertThat(restarts.isFirst()).isEqualTo(i == 0);
            seconds.add(restarts.next().toSeconds());
        }
        assertThat(seconds).containsExactly(2L, 4L, 8L, 16L, 32L, 60L, 60L, 60L);
    }

    @Test
    void aMinuteOfServiceResetsThePauses() {
        diesAfter(1);
        assertThat(restarts.next()).isEqualTo(Duration.ofSeconds(2));
        diesAfter(59);
        assertThat(restarts.isFirst()).isFalse();
        assertThat(restarts.next()).isEqualTo(Duration.ofSeconds(4));
        diesAfter(60);
        assertThat(restarts.isFirst()).isTrue();
        assertThat(restarts.next()).isEqualTo(Duration.ofSeconds(2));
    }
}
