package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class DynamicBatchingTest {
    private static final long MILLI = 1_000_000;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();
    private final FakeInstance instance = new FakeInstance(FakeInstance::copy);
    private final List<RecordingObserver> observers = new ArrayList<>();

    @AfterEach
    void everyResponseIsProperAndGivenBack() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
    }

    @Test
    void takesEverythingThatWaitsWhenAnInstanceIsFree() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        RecordingObserver a = submit(scheduler, "a", 1, 2, 10);
        RecordingObserver b = submit(scheduler, "b", 3, 2, 20);
        RecordingObserver c = submit(scheduler, "c", 5, 2, 30);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"), List.of("c"));
        assertThat(a.floats("OUT")).containsExactly(10, 11);
        assertThat(b.floats("OUT")).containsExactly(20, 21, 22, 23, 24, 25);
        assertThat(c.output("OUT").shape()).isEqualTo(Shape.of(5, 2));
    }

    @Test
    void waitsForOthersUntilTheOldestHasWaitedLongEnough() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(4), 5 * MILLI));
        submit(scheduler, "a", 1, 2, 0);
        scheduler.clock.advanceNanos(4 * MILLI);
        submit(scheduler, "b", 1, 2, 0);

        assertThat(scheduler.step()).isFalse();
        scheduler.clock.advanceNanos(MILLI);

        assertThat(scheduler.step()).isTrue();
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void sendsAPreferredSizeAtOnceAndLetsTheRestWait() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(2), 5 * MILLI));
        submit(scheduler, "a", 1, 2, 0);
        submit(scheduler, "b", 1, 2, 0);
        submit(scheduler, "c", 1, 2, 0);

        scheduler.drain();
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
        scheduler.clock.advanceNanos(5 * MILLI);
        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"), List.of("c"));
    }

    @Test
    void keepsRequestsOfDifferentShapesApartAndInOrder() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        submit(scheduler, "a", 1, 2, 0);
        submit(scheduler, "b", 2, 2, 0);
        submit(scheduler, "c", 1, 3, 0);
        submit(scheduler, "d", 1, 2, 0);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"), List.of("c"), List.of("d"));
    }

    @Test
    void executesOneRequestAtATimeWithoutBatching() {
        SteppedScheduler scheduler = scheduler(BatchPlanner.oneByOne());
        submit(scheduler, "a", 8, 2, 0);
        submit(scheduler, "b", 1, 2, 0);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a"), List.of("b"));
    }

    @Test
    void neverExecutesCancelledRequestsAndReleasesTheirMemory() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        RecordingObserver a = new RecordingObserver();
        Cancellation first = scheduler.submit(request("a", 1, 2, 0), a);
        long withA = memory.bytesInUse();
        submit(scheduler, "b", 1, 2, 0);

        first.cancel();
        first.cancel();

        a.assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(memory.bytesInUse()).isEqualTo(withA);
        assertThat(scheduler.inFlight()).isEqualTo(1);
        scheduler.drain();
        assertThat(instance.batches()).containsExactly(List.of("b"));
    }

    @Test
    void removesCancelledRequestsWhileNoInstanceIsIdle() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        for (int i = 0; i < 1_000; i++) {
            RecordingObserver observer = new RecordingObserver();
            scheduler.submit(request("gone", 1, 2, 0), observer).cancel();
            observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
        submit(scheduler, "last", 1, 2, 0);

        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("last"));
    }

    @Test
    void cancelsRequestsAtTheirDeadline() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 5 * MILLI));
        long deadline = scheduler.clock.getAsLong() + 3 * MILLI;
        RecordingObserver late = new RecordingObserver();
        submit(scheduler, "a", 1, 2, 0);
        scheduler.submit(builder("late", 1, 2, 0).deadline(deadline).of(1), late);
        RecordingObserver inTime = submit(scheduler, "b", 1, 2, 0);

        scheduler.clock.advanceNanos(5 * MILLI);
        scheduler.drain();

        late.assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(inTime.response().outputs()).hasSize(1);
        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void takesNothingUntilSoManyRequestsWaitOnce() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        scheduler.queue.hold(3);
        submit(scheduler, "a", 1, 2, 0);
        submit(scheduler, "b", 4, 2, 0); // items do not count

        assertThat(scheduler.step()).isFalse();
        submit(scheduler, "c", 1, 2, 0);
        assertThat(scheduler.step()).isTrue();
        submit(scheduler, "d", 1, 2, 0);
        assertThat(scheduler.step()).isTrue();

        assertThat(instance.batches()).containsExactly(List.of("a", "b", "c"), List.of("d"));
    }

    @Test
    void countsOnlyThoseThatWaitForTheFirstBatch() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        scheduler.queue.hold(2);
        RecordingObserver late = new RecordingObserver();
        scheduler.submit(
                builder("late", 1, 2, 0)
                        .deadline(scheduler.clock.getAsLong() + MILLI)
                        .of(1),
                late);
        scheduler.advance(MILLI);
        late.assertError(ErrorCode.CANCELLED, "request was cancelled");
        RecordingObserver gone = new RecordingObserver();
        scheduler.submit(request("gone", 1, 2, 0), gone).cancel();
        submit(scheduler, "a", 1, 2, 0);
        assertThat(scheduler.step()).isFalse();

        submit(scheduler, "b", 1, 2, 0);
        scheduler.drain();

        assertThat(instance.batches()).containsExactly(List.of("a", "b"));
    }

    @Test
    void takesWhatIsHeldWhenItStops() {
        SteppedScheduler scheduler = scheduler(new BatchPlanner(8, List.of(), 0));
        scheduler.queue.hold(3);
        RecordingObserver held = submit(scheduler, "a", 1, 2, 0);
        assertThat(scheduler.step()).isFalse();

        scheduler.queue.stop();
        scheduler.drain();

        assertThat(held.response().outputs()).hasSize(1);
    }

    private SteppedScheduler scheduler(BatchPlanner planner) {
        return new SteppedScheduler(model, planner, memory, instance);
    }

    private RecordingObserver submit(SteppedScheduler scheduler, String id, int items, int width, float first) {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        scheduler.submit(request(id, items, width, first), observer);
        return observer;
    }

    private CheckedRequest request(String id, int items, int width, float first) {
        return builder(id, items, width, first).of(items);
    }

    private Requests builder(String id, int items, int width, float first) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(items, width), first);
    }
}
