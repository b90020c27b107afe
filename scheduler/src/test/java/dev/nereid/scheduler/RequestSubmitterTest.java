package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The steps of a submission, with a cache that responds when the test lets it. */
@Timeout(60)
final class RequestSubmitterTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 7)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final FakeCache cache = new FakeCache();
    private final FakeInstance instance = new FakeInstance(FakeInstance::copy);

    @Test
    void checksTheStopBeforeCacheAndQueue() {
        ModelScheduler scheduler = start(true);
        scheduler.close();

        RecordingObserver observer = submit(scheduler, "x");

        assertThat(observer.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(cache.lookups).isEmpty();
        assertThat(instance.batches()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void looksInTheCacheBeforeTheQueue(boolean batches) {
        try (ModelScheduler scheduler = start(batches)) {
            cache.waits = true;
            try (RecordingObserver miss = submit(scheduler, "miss")) {
                assertThat(cache.lookups).hasSize(1);
                assertThat(scheduler.waiting()).isZero();
                assertThat(instance.batches())
                        .as("nothing before the lookup ends")
                        .isEmpty();

                cache.respondOnly();
                assertThat(miss.await().floats("OUT")).containsExactly(1, 2);
                cache.inserts.values().iterator().next().stored();
            }

            cache.waits = false;
            try (RecordingObserver hit = submit(scheduler, "hit")) {
                assertThat(hit.floats("OUT")).containsExactly(1, 2);
                assertThat(hit.response().isFinal()).isTrue();
            }
            assertThat(instance.batches()).containsExactly(List.of("miss"));
        }
    }

    private ModelScheduler start(boolean batches) {
        SchedulerEnvironment environment = new SchedulerEnvironment(memory, System::nanoTime, timer)
                .with(Optional.of(new CacheAccess(cache, Runnable::run)));
        BatchingPolicy policy = new BatchingPolicy(batches, List.of(), 0, false, PriorityPolicy.NONE);
        return ModelScheduler.start(
                new ModelPlan(model, policy), List.of(new Instance("i0", Device.CPU, instance)), environment);
    }

    private RecordingObserver submit(ModelScheduler scheduler, String id) {
        RecordingObserver observer = new RecordingObserver();
        CheckedRequest request = Requests.to(model, memory)
                .id(id)
                .floats("IN", Shape.of(1, 2), 1)
                .of(1);
        scheduler.submit(request, observer);
        return observer;
    }
}
