package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
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
    void runsAnActionOnceItIsReady() {
        List<Boolean> ready = new ArrayList<>();
        sender.setReady(false);
        sender.onReady(() -> ready.add(false));
        sender.onReady(() -> ready.add(sender.isReady()));
        assertThat(sender.isAwaited()).isTrue();
        assertThat(sender.isReady()).isFalse();

        sender.setReady(true);
        sender.setReady(true);

        assertThat(ready).containsExactly(true);
    }

    @Test
    void runsAnActionOfACancelledRequest() {
        List<Boolean> cancelled = new ArrayList<>();
        sender.setReady(false);
        sender.onReady(() -> cancelled.add(sender.isCancelled()));

        new FakeRequest(1, List.of()).with(sender).cancel();

        assertThat(cancelled).containsExactly(true);
    }

    @Test
    void runsAnActionAtTheEnd() {
        List<Boolean> ended = new ArrayList<>();
        sender.setReady(false);
        sender.onReady(() -> ended.add(sender.hasEnded()));

        sender.complete();

        assertThat(ended).containsExactly(true);
    }

    @Test
    void runsActionsOneAfterAnother() {
        AtomicInteger left = new AtomicInteger(100_000);
        Runnable again = new Runnable() {
            @Override
            public void run() {
                if (left.decrementAndGet() > 0) {
                    sender.onReady(this);
                }
            }
        };

        sender.onReady(again);

        assertThat(left).hasValue(0);
    }

    @Test
    void goesOnAfterAnActionThatThrows() {
        List<String> ran = new ArrayList<>();
        assertThatIllegalStateException()
                .isThrownBy(() -> sender.onReady(() -> {
                    throw new IllegalStateException("the action of the test");
                }));

        sender.onReady(() -> ran.add("next"));

        assertThat(ran).containsExactly("next");
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
