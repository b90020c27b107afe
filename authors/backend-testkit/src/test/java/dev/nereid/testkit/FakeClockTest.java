package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import org.junit.jupiter.api.Test;

final class FakeClockTest {
    private final FakeClock clock = new FakeClock();

    @Test
    void advancesOnlyOnRequest() {
        long before = clock.getAsLong();

        assertThat(clock.getAsLong()).isEqualTo(before);
    }

    @Test
    void passesTheOverflow() {
        long before = clock.getAsLong();

        clock.advance(Duration.ofMillis(2));

        assertThat(clock.getAsLong()).isNegative();
        assertThat(clock.getAsLong() - before).isEqualTo(2_000_000);
    }

    @Test
    void refusesToGoBack() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> clock.advanceNanos(-1))
                .withMessage("passed: -1 (expected: >= 0)");
    }
}
