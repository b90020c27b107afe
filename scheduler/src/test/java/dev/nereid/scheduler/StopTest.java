package dev.nereid.scheduler;

import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.spi.ErrorCode;
import org.junit.jupiter.api.Test;

/** What comes after the end. */
final class StopTest {
    private static final String TEXT =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";

    @Test
    void refusesWithTheIdInTheText() {
        try (QueuedRequests calls = new QueuedRequests(PriorityPolicy.NONE)) {
            calls.scheduler.queue.stop();

            calls.submit("x");
            calls.submit("");

            calls.observer("x").assertError(ErrorCode.UNAVAILABLE, "[request id: x] " + TEXT);
            calls.observer("").assertError(ErrorCode.UNAVAILABLE, "[request id: <id_unknown>] " + TEXT);
        }
    }
}
