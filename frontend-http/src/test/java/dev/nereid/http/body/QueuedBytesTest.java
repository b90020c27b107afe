package dev.nereid.http.body;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The read rate of clients. */
class QueuedBytesTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    private final QueuedBytes queued = QueuedBytes.of(new EmbeddedChannel());

    @Test
    void newlyQueuedBytesAreNotSlow() {
        queued.add(1000);
        queued.measure(SECOND, 0);

        assertThat(queued.drainNanos()).isZero();
    }

    @Test
    void drainTimeGrowsAsTheRateFalls() {
        queued.add(100_000);
        queued.measure(SECOND, 0);
        queued.measure(SECOND, -10_000);
        assertThat(queued.drainNanos()).isEqualTo(10 * SECOND);

        queued.measure(SECOND, -10_001);
        assertThat(queued.drainNanos()).isEqualTo(100_000 * SECOND);
        queued.measure(SECOND, -10_001);
        assertThat(queued.drainNanos()).isEqualTo(100_000 * SECOND);
    }

    @Test
    void addedBytesDoNotHideProgress() {
        queued.add(100_000);
        queued.measure(SECOND, 0);
        queued.add(50_000);
        queued.add(-50_000);
        queued.measure(SECOND, 0);

        assertThat(queued.drainNanos()).isEqualTo(2 * SECOND);
    }

    @Test
    void readBytesAreNotSlow() {
        queued.add(1000);
        queued.measure(SECOND, 0);
        queued.add(-1000);
        queued.measure(SECOND, 0);

        assertThat(queued.drainNanos()).isZero();
    }
}
