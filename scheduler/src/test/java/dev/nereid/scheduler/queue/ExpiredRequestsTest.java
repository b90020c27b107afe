package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests the rejection of expired requests during which something fails. */
final class ExpiredRequestsTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1).build();
    private final Queue<RuntimeException> failures = new ArrayDeque<>();
    private final ModelScope scope = Scopes.of(model, memory, this::now);
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<Deadline<QueueEntry>> expired = new ArrayList<>();

    private long now() {
        RuntimeException failure = failures.poll();
        if (failure != null) {
            throw failure;
        }
        return 0;
    }

    private void add(int count) {
        for (int i = 0; i < count; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            ScheduledRequest request =
                    new ScheduledRequest(scope, null, Requests.to(model, memory).of(1), observer, 0);
            expired.add(new Deadline<>(new QueueEntry(request, null, _ -> {}), Deadline.Cause.TIMEOUT, 0));
        }
    }

    @Test
    void anExceptionOfOneRequestDoesNotKeepTheOthers() {
        add(3);
        failures.add(new IllegalStateException("of a test"));

        QueueTimeouts.rejectAll(expired);

        assertThat(expired).isEmpty();
        observers
                .subList(1, 3)
                .forEach(observer -> observer.assertError(ErrorCode.UNAVAILABLE, "Request timeout expired"));
    }
}
