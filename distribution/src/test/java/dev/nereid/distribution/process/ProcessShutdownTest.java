package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Why a process ends, and with which status. */
@Timeout(60)
final class ProcessShutdownTest {
    private final ProcessShutdown shutdown = new ProcessShutdown();

    @Test
    void theCommandsOwnEndIsNoCallOfExit() throws InterruptedException {
        shutdown.commandEnded(4);

        assertThat(shutdown.onSystemExit(5)).isFalse();
        assertThat(shutdown.exitCaller()).isEmpty();
        assertThat(shutdown.awaitEnd()).isEqualTo(4);
    }

    @Test
    void theStatusOfACallOfExitIsKept() throws InterruptedException {
        assertThat(shutdown.onSystemExit(7)).isTrue();
        assertThat(shutdown.onSystemExit(8)).as("the first one counts").isFalse();
        shutdown.request();
        shutdown.await();
        shutdown.commandEnded(0);

        assertThat(shutdown.exitCaller()).contains(Thread.currentThread());
        assertThat(shutdown.awaitEnd()).isEqualTo(7);
    }

    @Test
    void aCommandThatDoesNotServeYetIsNotWaitedForAfterACallOfExit() throws InterruptedException {
        shutdown.onSystemExit(7);
        shutdown.request();

        assertThat(shutdown.awaitEnd()).isEqualTo(7);
    }

    @Test
    void interruptsACommandThatDoesNotWaitForShutdown() {
        try (ProcessShutdown.Interruption _ = shutdown.interruptCaller()) {
            shutdown.request();

            assertThatThrownBy(new CountDownLatch(1)::await).isInstanceOf(InterruptedException.class);
        }
    }

    @Test
    void recognizesTheSecondSignal() {
        assertThat(shutdown.onSignal()).isFalse();
        assertThat(shutdown.onSystemExit(143)).as("that of the signal").isFalse();
        assertThat(shutdown.onSignal()).isTrue();
    }

    @Test
    void aSignalWhileTheProcessEndsIsTheSecondOne() {
        shutdown.request();

        assertThat(shutdown.onSignal()).isTrue();
    }
}
