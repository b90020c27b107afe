package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** A sender accepts failed responses as that of the server does. */
class FakeSenderTest {
    private final BackendException no = new BackendException(ErrorCode.INTERNAL, "not this one");

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final FakeSender sender = new FakeSender(memory);

    @Test
    void continuesAfterAFailedResponse() {
        sender.sendError(no);
        sender.send(sender.newResponse());
        sender.sendError(no);
        assertThat(sender.hasEnded()).isFalse();
        sender.complete();

        assertThat(sender.failedResponses()).containsExactly(no, no);
        assertThat(sender.responses()).hasSize(1);
        assertThat(sender.failure()).isEmpty();
    }

    @Test
    void dropsFailedResponsesAfterTheEnd() {
        sender.fail(no);
        sender.sendError(no);

        assertThat(sender.failedResponses()).isEmpty();
        assertThat(sender.failure()).contains(no);
    }

    @Test
    void dropsFailedResponsesOnceTheRequestWasCancelled() {
        new FakeRequest(1, List.of()).with(sender).cancel();
        sender.sendError(no);

        assertThat(sender.failedResponses()).isEmpty();
        assertThat(sender.hasEnded()).isFalse();
    }

    @Test
    void refusesMissingErrors() {
        assertThatNullPointerException()
                .isThrownBy(() -> sender.sendError(null))
                .withMessage("error");
        assertThatNullPointerException().isThrownBy(() -> sender.fail(null)).withMessage("error");

        assertThat(sender.hasEnded()).isFalse();
    }
}
