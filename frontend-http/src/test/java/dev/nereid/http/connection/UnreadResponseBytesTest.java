package dev.nereid.http.connection;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The limit on responses that clients do not read. */
class UnreadResponseBytesTest {
    private final UnreadResponseBytes unread = new UnreadResponseBytes(100);

    @Test
    void bytesWithinTheLimitMayStay() {
        assertThat(unread.replace(0, 100)).isEqualTo(100);
    }

    @Test
    void theLimitIsSharedByAllEventLoops() {
        assertThat(unread.replace(0, 90)).isEqualTo(90);
        assertThat(unread.replace(0, 90)).isEqualTo(25);
        assertThat(unread.replace(90, 20)).as("the second loop has freed").isEqualTo(9);
    }

    @Test
    void aNewCountReplacesTheOldOne() {
        unread.replace(0, 90);
        assertThat(unread.replace(90, 95)).isEqualTo(95);
        assertThat(unread.replace(95, 0)).isZero();
        assertThat(unread.replace(0, 100)).isEqualTo(100);
    }
}
