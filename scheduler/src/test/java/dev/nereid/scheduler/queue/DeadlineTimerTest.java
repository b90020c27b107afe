package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.FailingTimer;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class DeadlineTimerTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FailingTimer timer = new FailingTimer();
    private final DeadlineTimer deadlines = new DeadlineTimer(timer, () -> {});
    private final ModelSettings model = ModelSettings.builder("m", 1).build();
    private final ScheduledRequest request = new ScheduledRequest(
            Scopes.of(model, memory, () -> 0), null, Requests.to(model, memory).of(1), new RecordingObserver(), 0);

    @Test
    void schedulesALaterDeadlineAfterAFailure() {
        timer.failNext();
        Deadline<QueueEntry> first = requireNonNull(deadlines.reserve(at(1)));
        assertThatThrownBy(() -> deadlines.schedule(first)).hasMessage("for a test");

        Deadline<QueueEntry> second = requireNonNull(deadlines.reserve(at(2)));
        deadlines.schedule(second);

        assertThat(second.nanos()).isEqualTo(2);
        assertThat(timer.scheduled()).isEqualTo(1);
        assertThat(deadlines.reserve(at(3))).as("of a later deadline").isNull();
        request.abandon();
    }

    private Deadline<QueueEntry> at(long nanos) {
        return new Deadline<>(new QueueEntry(request, null, _ -> {}), Deadline.Cause.TIMEOUT, nanos);
    }
}
