package dev.nereid.http.connection;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.connection.ConnectionDeadlines.Verdict;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Timeouts of a connection by its events. */
class ConnectionDeadlinesTest {
    private static final HttpTimeouts TIMEOUTS = new HttpTimeouts(
            Duration.ofSeconds(30),
            1000,
            Duration.ofSeconds(10),
            Duration.ofSeconds(600),
            Duration.ZERO,
            Duration.ofSeconds(60));
    private static final HttpTimeouts NONE =
            new HttpTimeouts(Duration.ZERO, 0, Duration.ZERO, Duration.ZERO, Duration.ZERO, Duration.ZERO);

    private long now = -5;
    private ConnectionDeadlines deadlines = new ConnectionDeadlines(TIMEOUTS, nanos());

    @Test
    void aConnectionThatSendsNothingIsClosedSilently() {
        assertThat(checkAfter(30)).isEqualTo(Verdict.CONTINUE);
        assertThat(checkAfter(2)).isEqualTo(Verdict.CLOSE);
    }

    @Test
    void theHeaderTimeoutStartsWithItsFirstByte() {
        checkAfter(20);
        deadlines.bytesArrived(1, nanos());
        assertThat(checkAfter(20)).isEqualTo(Verdict.CONTINUE);
        deadlines.bytesArrived(1, nanos());
        assertThat(checkAfter(12)).isEqualTo(Verdict.REQUEST_TIMEOUT);
    }

    @Test
    void aLongExecutionIsNotIdle() {
        request();

        assertThat(checkAfter(100_000)).isEqualTo(Verdict.CONTINUE);
    }

    @Test
    void aConnectionIsIdleFromItsLastResponseOn() {
        request();
        checkAfter(5_000);
        deadlines.responseWritten(nanos());

        assertThat(deadlines.isEvictable()).isTrue();
        assertThat(checkAfter(590)).isEqualTo(Verdict.CONTINUE);
        assertThat(checkAfter(12)).isEqualTo(Verdict.CLOSE);
    }

    @Test
    void aConnectionIsEvictableUntilItsFirstHeaderAndBetweenRequests() {
        assertThat(deadlines.isEvictable()).isTrue();
        deadlines.bytesArrived(1, nanos());
        assertThat(deadlines.isEvictable()).as("reads its first header").isTrue();
        deadlines.headerRead();
        assertThat(deadlines.isEvictable()).as("reads a body").isFalse();
        deadlines.requestRead(false, nanos());
        assertThat(deadlines.isEvictable()).as("responding").isFalse();
        deadlines.responseWritten(nanos());
        assertThat(deadlines.isEvictable()).as("idle").isTrue();
        deadlines.bytesArrived(1, nanos());
        assertThat(deadlines.isEvictable()).as("reads its second header").isFalse();
    }

    @Test
    void aBodyThatArrivesTooSlowlyIsLateAfterTheGrace() {
        header();
        assertThat(checkAfter(9)).isEqualTo(Verdict.CONTINUE);
        deadlines.bytesArrived(100, nanos());

        assertThat(checkAfter(1)).isEqualTo(Verdict.REQUEST_TIMEOUT);
    }

    @Test
    void aBodyThatStopsIsLateHoweverFastItBegan() {
        header();
        deadlines.bytesArrived(1 << 30, nanos());
        assertThat(checkAfter(10)).isEqualTo(Verdict.CONTINUE);

        assertThat(checkAfter(10)).isEqualTo(Verdict.REQUEST_TIMEOUT);
    }

    @Test
    void aBodyThatArrivesFastEnoughMayTakeAnyTime() {
        header();
        for (int second = 0; second < 1000; second++) {
            deadlines.bytesArrived(1001, nanos());
            assertThat(checkAfter(1)).isEqualTo(Verdict.CONTINUE);
        }
    }

    @Test
    void aBodyIsNotMeasuredWhileItIsNotRead() {
        header();
        now += 100;

        assertThat(deadlines.check(nanos(), TimeUnit.SECONDS.toNanos(100), false, 0))
                .isEqualTo(Verdict.CONTINUE);
    }

    @Test
    void anUnreadResponseEndsTheConnection() {
        request();
        deadlines.responseWritten(nanos());
        assertThat(check(1, 77)).isEqualTo(Verdict.CONTINUE);
        assertThat(check(60, 77)).isEqualTo(Verdict.CONTINUE);
        assertThat(check(62, 77)).isEqualTo(Verdict.ABORT);
    }

    @Test
    void aResponseThatIsReadSlowlyMayTakeAnyTime() {
        request();
        deadlines.responseWritten(nanos());
        for (int left = 100; left > 0; left--) {
            assertThat(check(50, left)).isEqualTo(Verdict.CONTINUE);
        }
    }

    @Test
    void withoutTimeoutsNothingIsLate() {
        deadlines = new ConnectionDeadlines(NONE, nanos());
        assertThat(checkAfter(1 << 20)).isEqualTo(Verdict.CONTINUE);
        deadlines.bytesArrived(1, nanos());
        assertThat(checkAfter(1 << 20)).isEqualTo(Verdict.CONTINUE);
        deadlines.headerRead();
        assertThat(checkAfter(1 << 20)).isEqualTo(Verdict.CONTINUE);
        deadlines.requestRead(false, nanos());
        deadlines.responseWritten(nanos());
        assertThat(check(1 << 20, 1)).isEqualTo(Verdict.CONTINUE);
        assertThat(check(1 << 20, 1)).isEqualTo(Verdict.CONTINUE);
    }

    private void header() {
        deadlines.bytesArrived(100, nanos());
        deadlines.headerRead();
    }

    private void request() {
        header();
        deadlines.requestRead(false, nanos());
    }

    private Verdict checkAfter(long seconds) {
        return check(seconds, 0);
    }

    /** Advances the clock; the last second, or less, is the time since the previous check. */
    private Verdict check(long seconds, long waiting) {
        now += seconds;
        long elapsed = deadlines.readsBody() ? seconds : Math.min(1, seconds);
        return deadlines.check(nanos(), TimeUnit.SECONDS.toNanos(elapsed), true, waiting);
    }

    private long nanos() {
        return TimeUnit.SECONDS.toNanos(now);
    }
}
