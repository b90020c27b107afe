package dev.nereid.grpc.connection;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.FakeClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class StalledConnectionsTest {
    private static final Duration PAUSE = Duration.ofMillis(600);

    private final FakeClock clock = new FakeClock();
    private final List<String> closed = new ArrayList<>();
    private final StalledConnections unread = new StalledConnections(
            new StalledConnections.Limits(100, 1_000_000, Duration.ofSeconds(60).toNanos()), clock);

    private StalledConnections.Connection join(String name) {
        return unread.register(_ -> closed.add(name));
    }

    @Test
    void closesAConnectionThatIsStalledTooLong() {
        StalledConnections.Connection connection = join("slow");
        connection.observe(1, 7);
        clock.advance(Duration.ofSeconds(59));
        connection.observe(1, 7);
        assertThat(closed).isEmpty();

        clock.advance(Duration.ofSeconds(1));
        connection.observe(1, 7);

        assertThat(closed).containsExactly("slow");
        assertThat(unread.waiting()).isZero();
    }

    @Test
    void keepsAConnectionWithProgress() {
        StalledConnections.Connection connection = join("steady");
        for (int i = 0; i < 100; i++) {
            connection.observe(1, i);
            clock.advance(Duration.ofSeconds(59));
        }

        assertThat(closed).isEmpty();
    }

    @Test
    void closesConnectionsStalledLongestUntilTheRestFits() {
        StalledConnections.Connection first = join("first");
        StalledConnections.Connection second = join("second");
        StalledConnections.Connection reader = join("reader");
        first.observe(40, 0);
        clock.advance(PAUSE);
        second.observe(40, 0);
        clock.advance(PAUSE);

        reader.observe(40, 0);

        assertThat(closed).containsExactly("first");
        assertThat(unread.waiting()).isEqualTo(80);
        second.observe(50, 0);
        reader.observe(51, 1);
        assertThat(closed).containsExactly("first", "second");
    }

    @Test
    void neverClosesAClientThatReadsWhateverWaits() {
        StalledConnections.Connection reader = join("reader");
        for (int i = 0; i < 10; i++) {
            reader.observe(1000, i * 10_000L);
            clock.advance(Duration.ofMillis(250));
        }

        assertThat(closed).isEmpty();
    }

    @Test
    void countsBytesOfLargeResponses() {
        StalledConnections.Connection connection = join("large");
        connection.addBytes(1_000_001);
        connection.observe(1, 0);
        clock.advance(PAUSE);

        connection.observe(1, 0);

        assertThat(closed).containsExactly("large");
    }

    @Test
    void closesNoOtherForBytesOfAClosedConnection() {
        StalledConnections.Connection first = join("first");
        StalledConnections.Connection second = join("second");
        first.addBytes(900_000);
        first.observe(1, 0);
        clock.advance(PAUSE);
        second.addBytes(900_000);
        second.observe(1, 0);
        assertThat(closed).containsExactly("first");
        clock.advance(PAUSE);

        second.observe(1, 0);
        first.removeBytes(900_000);
        first.addBytes(5);

        assertThat(closed).containsExactly("first");
        assertThat(unread.waitingBytes()).isEqualTo(900_000);
    }

    @Test
    void closesTheSlowestConnectionsIfLimitsAreExceeded() {
        StalledConnections.Connection trickle = join("trickle");
        StalledConnections.Connection slow = join("slow");
        for (int i = 0; i < 4; i++) {
            trickle.observe(60, i);
            slow.observe(60, i * 10_000L);
            clock.advance(Duration.ofMillis(400));
        }

        assertThat(closed).containsExactly("trickle");
    }

    @Test
    void countsBytesSentBeforeAsNoProgress() {
        StalledConnections.Connection connection = join("slow");
        for (int i = 0; i < 61; i++) {
            connection.observe(1, i % 2);
            clock.advance(Duration.ofSeconds(1));
        }
        assertThat(closed).isEmpty();

        connection.observe(1, 1);

        assertThat(closed).containsExactly("slow");
    }

    @Test
    void reportsWhetherAConnectionWasStalled() {
        StalledConnections.Connection connection = join("slow");
        connection.observe(1, 7);
        assertThat(connection.wasStalled()).isFalse();
        clock.advance(PAUSE);

        connection.observe(1, 7);
        assertThat(connection.wasStalled()).isTrue();

        connection.observe(0, 8);
        assertThat(connection.wasStalled()).isFalse();
    }

    @Test
    void removesUnregisteredConnections() {
        StalledConnections.Connection connection = join("gone");
        connection.observe(60, 0);
        assertThat(unread.waiting()).isEqualTo(60);

        connection.unregister();
        connection.observe(60, 0);

        assertThat(unread.waiting()).isZero();
    }
}
