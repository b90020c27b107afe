package dev.nereid.scheduler;

import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.spi.ErrorCode;
import org.junit.jupiter.api.Test;

/** Requests after the stop. */
final class StopTest {
    private static final String TEXT =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";

    @Test
    void refusesWithTheIdInTheText() {
        try (QueuedRequests queued = new QueuedRequests(PriorityPolicy.NONE)) {
            queued.scheduler.queue.stop();

            queued.submit("x");
            queued.submit("");

            queued.observer("x").assertError(ErrorCode.UNAVAILABLE, "[request id: x] " + TEXT);
            queued.observer("").assertError(ErrorCode.UNAVAILABLE, "[request id: <id_unknown>] " + TEXT);
        }
    }
}
