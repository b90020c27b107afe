package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Why a process ends, and with which status. */
@Timeout(60)
final class StopSignalTest {
    private final StopSignal stop = new StopSignal();

    @Test
    void theCommandsOwnEndIsNoCallOfExit() throws InterruptedException {
        stop.ended(4);

        assertThat(stop.exitCalled(5)).isFalse();
        assertThat(stop.exitCaller()).isEmpty();
        assertThat(stop.awaitEnd()).isEqualTo(4);
    }

    @Test
    void theStatusOfACallOfExitIsKept() throws InterruptedException {
        assertThat(stop.exitCalled(7)).isTrue();
        assertThat(stop.exitCalled(8)).as("the first one counts").isFalse();
        stop.request();
        stop.await();
        stop.ended(0);

        assertThat(stop.exitCaller()).contains(Thread.currentThread());
        assertThat(stop.awaitEnd()).isEqualTo(7);
    }

    @Test
    void aCommandThatDoesNotServeYetIsNotWaitedForAfterACallOfExit() throws InterruptedException {
        stop.exitCalled(7);
        stop.request();

        assertThat(stop.awaitEnd()).isEqualTo(7);
    }

    @Test
    void theSecondSignalIsKnown() {
        assertThat(stop.signalled()).isFalse();
        assertThat(stop.exitCalled(143)).as("that of the signal").isFalse();
        assertThat(stop.signalled()).isTrue();
    }

    @Test
    void aSignalWhileTheProcessEndsIsTheSecondOne() {
        stop.request();

        assertThat(stop.signalled()).isTrue();
    }
}
