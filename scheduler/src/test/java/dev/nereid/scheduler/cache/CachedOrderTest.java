package dev.nereid.scheduler.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeCache;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Cached responses among those of executions, for a model that preserves the order of responses. */
final class CachedOrderTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
            .build();
    private final Map<String, DeferredExecution> executions = new HashMap<>();
    private final SteppedScheduler scheduler = new SteppedScheduler(
            model,
            BatchPlanner.oneByOne(),
            new BatchingPolicy(true, List.of(), 0, true, PriorityPolicy.NONE),
            memory,
            ExecutionTraits.DEFAULT,
            new FakeInstance(batch -> {
                FakeInstance.copy(batch);
                executions.put(batch.requests().getFirst().id(), batch.defer());
            }));
    private final FakeCache cache = new FakeCache();
    private final CachedSubmission gate = new CachedSubmission(
            scheduler.model,
            new CacheAccess(cache, Runnable::run),
            scheduler.clock,
            (request, submitting) ->
                    assertThat(scheduler.queue.offer(request, false)).isEqualTo(OfferResult.Outcome.ACCEPTED));

    @Test
    void aHitWaitsForEarlierResponses() {
        RecordingObserver known = submit("known", 1);
        scheduler.drain();
        executions.get("known").complete();
        RecordingObserver slow = submit("slow", 2);
        scheduler.drain();

        RecordingObserver hit = submit("hit", 1);
        assertThat(hit.isSilent()).as("the slow one was taken before").isTrue();
        executions.get("slow").complete();

        assertThat(hit.floats("OUT")).containsExactly(1);
        assertThat(executions).containsOnlyKeys("known", "slow");
        List.of(known, slow, hit).forEach(RecordingObserver::close);
        assertThat(scheduler.inFlight()).isZero();
    }

    @Test
    void aHitOvertakesWhatIsStillQueued() {
        RecordingObserver known = submit("known", 1);
        scheduler.drain();
        executions.get("known").complete();
        RecordingObserver queued = submit("queued", 2);

        RecordingObserver hit = submit("hit", 1);

        assertThat(hit.floats("OUT")).containsExactly(1);
        assertThat(queued.isSilent()).isTrue();
        scheduler.drain();
        executions.get("queued").complete();
        List.of(known, queued, hit).forEach(RecordingObserver::close);
        assertThat(scheduler.inFlight()).isZero();
    }

    private RecordingObserver submit(String id, float number) {
        RecordingObserver observer = new RecordingObserver();
        CheckedRequest checked = Requests.to(model, memory)
                .id(id)
                .floats("IN", Shape.of(1, 1), number)
                .of(1);
        gate.submit(new ScheduledRequest(scheduler.model, scheduler.order, checked, observer, 0));
        return observer;
    }
}
