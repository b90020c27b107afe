package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class DeadlineHeapTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1).build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final ScheduledRequest request =
            new ScheduledRequest(scope, null, Requests.to(model, memory).of(1), new RecordingObserver(), 0);
    private final QueueEntry entry = new QueueEntry(request, null, _ -> {});

    @ParameterizedTest
    @ValueSource(longs = {0, Long.MAX_VALUE - 40, -40}) // the clock may overflow
    void keepsTheEarliestFirst(long start) {
        DeadlineHeap<QueueEntry> heap = new DeadlineHeap<>();
        List<Deadline<QueueEntry>> inside = new ArrayList<>();
        Random random = new Random(start);
        for (int i = 0; i < 5_000; i++) {
            if (inside.isEmpty() || random.nextInt(100) < (i % 200 < 100 ? 70 : 30)) {
                Deadline<QueueEntry> deadline =
                        new Deadline<>(entry, Deadline.Cause.TIMEOUT, start + random.nextInt(80));
                heap.add(deadline);
                inside.add(deadline);
            } else {
                heap.remove(inside.remove(random.nextInt(inside.size())));
            }

            assertThat(heap.size()).isEqualTo(inside.size());
            Deadline<QueueEntry> first = heap.peek();
            if (inside.isEmpty()) {
                assertThat(first).isNull();
            } else {
                assertThat(first).isNotNull();
                assertThat(first.nanos() - start)
                        .isEqualTo(inside.stream()
                                .map(deadline -> deadline.nanos() - start)
                                .min(Comparator.naturalOrder())
                                .orElseThrow());
            }
        }
        assertThat(inside).isNotEmpty();
    }
}
