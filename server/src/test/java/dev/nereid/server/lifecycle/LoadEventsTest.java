package dev.nereid.server.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.LoadCounts;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class LoadEventsTest {
    private final LoadEvents events = new LoadEvents();

    @Test
    void countsByModel() {
        events.loaded("b", 1_000_000);
        events.loaded("b", 2_000_000);
        events.unloaded("b");
        events.failed("a");

        assertThat(events.counts())
                .containsExactly(
                        new LoadCounts("a", 0, 1, 0, Duration.ZERO),
                        new LoadCounts("b", 2, 0, 1, Duration.ofMillis(3)));
    }

    /** Clients choose the names of models whose files they send. */
    @Test
    void countsTooManyModelsTogether() {
        for (int i = 0; i < LoadEvents.MAX_MODELS + 5; i++) {
            events.loaded("model" + i, 1);
        }
        events.loaded("model0", 1);

        assertThat(events.counts())
                .hasSize(LoadEvents.MAX_MODELS + 1)
                .contains(
                        new LoadCounts(LoadEvents.OTHERS, 5, 0, 0, Duration.ofNanos(5)),
                        new LoadCounts("model0", 2, 0, 0, Duration.ofNanos(2)));
    }
}
