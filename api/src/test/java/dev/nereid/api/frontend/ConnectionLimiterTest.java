package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.InetAddress;
import java.net.UnknownHostException;
import org.junit.jupiter.api.Test;

class ConnectionLimiterTest {
    private static final InetAddress ONE = address(1);
    private static final InetAddress OTHER = address(2);

    @Test
    void refusesConnectionsBeyondTheBound() {
        ConnectionLimiter limiter = new ConnectionLimiter(2, 0);
        limiter.tryOpen(ONE);
        limiter.tryOpen(ONE);

        boolean third = limiter.tryOpen(OTHER);

        assertThat(third).isFalse();
        assertThat(limiter.open()).isEqualTo(2);
        assertThat(limiter.refused()).isEqualTo(1);
    }

    @Test
    void acceptsAConnectionAfterAnotherClosed() {
        ConnectionLimiter limiter = new ConnectionLimiter(1, 1);
        limiter.tryOpen(ONE);

        limiter.closed(ONE);

        assertThat(limiter.tryOpen(ONE)).isTrue();
    }

    @Test
    void boundsEachAddressByItself() {
        ConnectionLimiter limiter = new ConnectionLimiter(10, 1);
        limiter.tryOpen(ONE);

        boolean second = limiter.tryOpen(ONE);
        boolean ofAnother = limiter.tryOpen(OTHER);

        assertThat(second).isFalse();
        assertThat(ofAnother).isTrue();
        assertThat(limiter.open()).isEqualTo(2);
    }

    @Test
    void refusesNothingWithoutLimits() {
        ConnectionLimiter limiter = ConnectionLimiter.unlimited();

        for (int i = 0; i < 1_000; i++) {
            assertThat(limiter.tryOpen(ONE)).isTrue();
        }

        assertThat(limiter.open()).isEqualTo(1_000);
    }

    @Test
    void refusesNegativeBounds() {
        assertThatThrownBy(() -> new ConnectionLimiter(-1, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("connections: -1, 0 per address (expected: each 0 or more)");
    }

    private static InetAddress address(int last) {
        try {
            return InetAddress.getByAddress(new byte[] {10, 0, 0, (byte) last});
        } catch (UnknownHostException e) {
            throw new IllegalStateException(e);
        }
    }
}
