package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class PriorityLevelsTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .build();
    private final ModelScope scope = Scopes.of(model, memory, () -> 0);
    private final PriorityLevels levels =
            new PriorityLevels(new PriorityPolicy(9, 5, QueuePolicy.NONE, Map.of()), new EqualInputs(scope.settings()));
    private final List<QueueEntry> entries = new ArrayList<>();

    @AfterEach
    void giveBack() {
        entries.forEach(entry -> entry.request().release());
    }

    @Test
    void keepsOrderOfArrivalInALevel() {
        add(3, 1);
        add(3, 2);
        add(3, 3);

        assertThat(sizes()).containsExactly(1, 2, 3);
    }

    @Test
    void goesFromLevelToLevel() {
        add(9, 1);
        add(0, 2);
        add(1, 3);
        add(9, 4);
        add(5, 5);

        assertThat(sizes()).containsExactly(3, 2, 5, 1, 4);
    }

    @Test
    void countsItemsOfWhatWaits() {
        QueueEntry one = add(1, 4);
        add(2, 3);
        assertThat(levels.length()).isEqualTo(2);
        assertThat(levels.items()).isEqualTo(7);

        remove(one);

        assertThat(levels.length()).isEqualTo(1);
        assertThat(levels.items()).isEqualTo(3);
    }

    @Test
    void anyRequestMayLeave() {
        QueueEntry first = add(1, 1);
        add(1, 2);
        QueueEntry middle = add(1, 3);
        add(1, 4);
        QueueEntry last = add(1, 5);

        remove(middle);
        assertThat(sizes()).containsExactly(1, 2, 4, 5);
        remove(first);
        remove(last);
        add(1, 6);

        assertThat(sizes()).containsExactly(2, 4, 6);
    }

    @Test
    void aDelayedRequestGoesBehindItsLevelAndMayLeave() {
        QueueEntry one = add(1, 1);
        QueueEntry two = add(1, 2);
        add(2, 3);
        levels.level(1).delay(one);
        assertThat(sizes()).containsExactly(2, 1, 3);
        levels.level(1).delay(two);
        add(1, 4);
        assertThat(sizes()).containsExactly(4, 1, 2, 3);

        remove(one);
        remove(two);
        add(1, 5);

        assertThat(sizes()).containsExactly(4, 5, 3);
    }

    @Test
    void isEmptyAgain() {
        remove(add(1, 1));
        remove(add(2, 1));

        assertThat(sizes()).isEmpty();
        assertThat(levels.first()).isNull();
        add(1, 2);
        assertThat(sizes()).containsExactly(2);
    }

    private QueueEntry add(long priority, int items) {
        CheckedRequest checked = Requests.to(model, memory)
                .floats("IN", Shape.of(items, 2), 0)
                .priority(priority)
                .of(items);
        ScheduledRequest request = new ScheduledRequest(scope, null, checked, new RecordingObserver(), 0);
        QueueEntry entry = new QueueEntry(request, null, _ -> {});
        entries.add(entry);
        levels.add(entry, levels.level(priority));
        return entry;
    }

    private void remove(QueueEntry entry) {
        PriorityLevel level = entry.level;
        assertThat(level).isNotNull();
        levels.remove(entry, level);
    }

    /** Returns the sizes of all requests in order. */
    private List<Integer> sizes() {
        List<Integer> sizes = new ArrayList<>();
        levels.rewind();
        while (levels.next()) {
            sizes.add(levels.batchSize());
        }
        return sizes;
    }
}
