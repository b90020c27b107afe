package dev.nereid.grpc.connection;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class FloodLimitTest {
    private final FakeClock clock = new FakeClock();
    private final FloodLimit budget = new FloodLimit(3, clock);

    private int spent() {
        int count = 0;
        while (budget.tryCount()) {
            count++;
        }
        return count;
    }

    @Test
    void allowsTheBudgetInAWindow() {
        assertThat(spent()).isEqualTo(3);
        clock.advance(Duration.ofSeconds(9));
        assertThat(spent()).isZero();
        clock.advance(Duration.ofSeconds(1));
        assertThat(spent()).isEqualTo(3);
    }

    @Test
    void allowsOneMoreForEachCompletedCall() {
        budget.allowOneMore();
        budget.allowOneMore();
        assertThat(spent()).isEqualTo(5);
    }

    @Test
    void limitsWhatIsSavedUp() {
        for (int i = 0; i < 1000; i++) {
            budget.allowOneMore();
        }
        assertThat(spent()).isEqualTo(12);
    }
}
