package dev.nereid.scheduler.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.Timing;
import dev.nereid.scheduler.FakeCache;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Queue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The life cycle of requests to a model with a response cache, step by step. */
final class CachedRequestsTest {
    private static final int LARGE = (int) CachedSubmission.MAX_DIRECT_BYTES / Float.BYTES + 1;

    private final ModelSettings settings = ModelSettings.builder("m", 7)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    private final FakeDeviceMemory gpu = new FakeDeviceMemory(new MemoryPlace(MemoryPlace.Kind.GPU, 0));
    private final LeakCheckingMemory memory = new LeakCheckingMemory(gpu);
    private final FakeCache cache = new FakeCache();
    private final Queue<Runnable> background = new ArrayDeque<>();
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final List<Boolean> submitting = new ArrayList<>();
    private boolean broken;
    private boolean brokenAfterwards;
    private FakeInstance.Execution execution = FakeInstance::copy;
    private final FakeInstance instance = new FakeInstance(batch -> execution.execute(batch));
    private final SteppedScheduler scheduler =
            new SteppedScheduler(settings, new BatchPlanner(64, List.of(), 0), memory, instance);
    private final CachedSubmission gate = new CachedSubmission(
            scheduler.model, new CacheAccess(cache, background::add), scheduler.clock, this::enqueue);

    @AfterEach
    void everythingWasGivenBack() {
        observers.forEach(RecordingObserver::check);
        observers.forEach(observer -> assertThat(observer.hasEnded()).isTrue());
        observers.forEach(RecordingObserver::close);
        assertThat(instance.violations()).isEmpty();
        assertThat(scheduler.inFlight()).isZero();
        assertThat(cache.open).as("entries that are read").isZero();
        memory.close();
    }

    @Test
    void returnsACachedResponseForAnEqualRequest() {
        RecordingObserver first = submit(request(1, 2).id("a").of(1));
        scheduler.drain();

        RecordingObserver second = submit(request(1, 2).id("b").of(1));

        assertThat(first.floats("OUT")).containsExactly(1, 2);
        assertThat(second.floats("OUT")).containsExactly(1, 2);
        assertThat(second.output("OUT").shape()).isEqualTo(Shape.of(1, 2));
        assertThat(second.response().id()).isEqualTo("b");
        assertThat(second.response().version()).isEqualTo(7);
        assertThat(second.response().isFinal()).isTrue();
        assertThat(instance.batches()).containsExactly(List.of("a"));
        assertThat(cache.open).isEqualTo(1); // no copy: the client reads where the cache keeps it
    }

    @Test
    void freesTheInputsOfAHitBeforeItsResponseIsClosed() {
        submit(request(1, 2).of(1));
        scheduler.drain();
        observers.getFirst().close();

        RecordingObserver hit = submit(request(1, 2).of(1));

        assertThat(memory.buffersInUse()).isZero();
        assertThat(scheduler.inFlight()).isEqualTo(1);
        assertThat(hit.floats("OUT")).containsExactly(1, 2);
    }

    @Test
    void executesADifferentRequest() {
        submit(request(1, 2).id("a").of(1));
        scheduler.drain();

        RecordingObserver other = submit(request(4, 2).id("b").of(1));

        assertThat(other.hasEnded()).isFalse();
        scheduler.drain();
        assertThat(other.floats("OUT")).containsExactly(4, 5);
    }

    @Test
    void cachesNoFailure() {
        execution = batch -> {
            throw new BackendException(ErrorCode.INTERNAL, "not today");
        };
        submit(request(1).id("a").of(1));
        scheduler.drain();
        execution = FakeInstance::copy;

        RecordingObserver second = submit(request(1).id("b").of(1));
        scheduler.drain();

        assertThat(second.floats("OUT")).containsExactly(1);
        assertCounted(new Timing(2, 0), Timing.NONE);
    }

    @Test
    void storesNoParameters() {
        execution = batch -> {
            FakeInstance.copy(batch);
            batch.requests().getFirst().response().parameter("mood", "good");
        };
        RecordingObserver first = submit(request(1).of(1));
        scheduler.drain();

        RecordingObserver hit = submit(request(1).of(1));

        assertThat(first.response().parameters()).containsOnlyKeys("mood");
        assertThat(hit.response().parameters()).isEmpty();
        assertThat(instance.batches()).hasSize(1);
    }

    @Test
    void proceedsWithoutCacheForInputsOnADevice() {
        TensorBuffer data = gpu.allocate(4);
        RecordingObserver observer = submit(Requests.to(settings, memory)
                .input("IN", gpu.floats(data, Shape.of(1, 1), 7))
                .onRelease(data::close)
                .of(1));
        execution = FakeInstance::copy;
        scheduler.drain();

        assertThat(observer.floats("OUT")).containsExactly(7);
        assertThat(cache.lookups).isEmpty();
        assertThat(cache.entries).isEmpty();
        assertCounted(Timing.NONE, Timing.NONE);
    }

    @Test
    void storesOutputsOfADeviceOnceTheyAreOnTheHost() {
        execution = batch -> {
            Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(1, 1), gpu.place());
            gpu.write(batch.gather("IN").data(), out.data());
        };
        submit(request(1).of(1));
        scheduler.drain();

        assertThat(cache.lookups).hasSize(1);
        assertThat(cache.entries).hasSize(1);
        assertThat(gpu.buffersInUse()).isZero();
    }

    @Test
    void insertsTheResponseBeforeDelivery() {
        List<Integer> kept = new ArrayList<>();
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        ScheduledRequest request = new ScheduledRequest(
                scheduler.model,
                scheduler.order,
                request(1).of(1),
                new Forwarding(observer, () -> kept.add(cache.entries.size())),
                0);
        gate.submit(request);
        scheduler.drain();

        assertThat(kept).containsExactly(1);
    }

    @Test
    void countsHitsAndMisses() {
        scheduler.clock.advanceNanos(100);
        cache.waits = true;
        submit(request(1).of(1));
        scheduler.clock.advanceNanos(5);
        cache.respondOnly();
        scheduler.drain();
        scheduler.clock.advanceNanos(3);
        assertCounted(new Timing(1, 5), Timing.NONE);
        cache.inserts.values().iterator().next().stored();
        assertCounted(new Timing(1, 8), Timing.NONE);
        InferenceTimings missed = timings();
        submit(request(1).of(1));
        scheduler.clock.advanceNanos(2);
        cache.respondOnly();

        assertCounted(new Timing(1, 8), new Timing(1, 2));
        assertThat(timings().queue()).isEqualTo(new Timing(2, missed.queue().nanos()));
        assertThat(timings().success()).isEqualTo(new Timing(2, missed.success().nanos() + 2));
    }

    @Test
    void countsAMissWhoseResponseIsTooLargeOrADuplicate() {
        cache.refuses = true;
        submit(request(1).of(1));
        scheduler.drain();
        assertCounted(new Timing(1, 0), Timing.NONE);
        cache.refuses = false;

        submit(request(2).of(1));
        submit(request(2).of(1));
        scheduler.drain();

        assertCounted(new Timing(3, 0), Timing.NONE);
    }

    /** Hits and misses are as many as lookups. */
    @Test
    void countsALookupHoweverItsRequestEnds() {
        execution = _ -> {
            throw new BackendException(ErrorCode.INTERNAL, "failed");
        };
        submit(request(1).of(1));
        scheduler.drain();
        assertCounted(new Timing(1, 0), Timing.NONE);

        cache.waits = true;
        Cancellation cancelled = submit(request(1).of(1), new RecordingObserver());
        cancelled.cancel();
        cache.respondOnly();
        assertCounted(new Timing(2, 0), Timing.NONE);
    }

    @Test
    void executesWithoutACacheThatFails() {
        cache.fails = true;
        RecordingObserver first = submit(request(1).of(1));
        scheduler.drain();
        assertThat(first.floats("OUT")).containsExactly(1);

        cache.fails = false;
        RecordingObserver second = submit(request(1).of(1));
        cache.fails = true;
        scheduler.drain();

        assertThat(second.floats("OUT")).containsExactly(1);
        assertCounted(new Timing(2, 0), Timing.NONE);
    }

    @Test
    void ignoresLaterLookupResults() {
        RecordingObserver observer = submit(request(1).of(1));
        scheduler.drain();
        cache.respondOnly();
        cache.lookups.values().iterator().next().missing();
        cache.inserts.values().iterator().next().failed("late");

        assertThat(observer.floats("OUT")).containsExactly(1);
        assertThat(instance.batches()).hasSize(1);
    }

    @Test
    void takesABrokenEntryForNone() {
        submit(request(1).of(1));
        scheduler.drain();
        cache.entries.replaceAll((key, content) -> content.asSlice(0, content.byteSize() - 1));

        RecordingObserver second = submit(request(1).of(1));
        scheduler.drain();

        assertThat(second.floats("OUT")).containsExactly(1);
        assertThat(instance.batches()).hasSize(2);
    }

    @Test
    void takesAnEntryOfAnotherModelForNone() {
        submit(request(1).of(1));
        scheduler.drain();
        MemorySegment other = Arena.ofAuto().allocate(1024, 64);
        var outputs = List.of(new NamedTensor("OUT", Tensor.ofStrings(Shape.of(1), List.of("x"))));
        CachedResponse.encode(outputs, other);
        cache.entries.replaceAll((key, content) -> other);

        RecordingObserver second = submit(request(1).of(1));
        scheduler.drain();

        assertThat(second.floats("OUT")).containsExactly(1);
    }

    /** The arena of its content is closed, or there is no memory. */
    @ParameterizedTest
    @ValueSource(classes = {IllegalStateException.class, OutOfMemoryError.class})
    void executesARequestWhoseEntryFails(Class<? extends Throwable> kind) throws ReflectiveOperationException {
        submit(request(1).of(1));
        scheduler.drain();
        cache.trouble = kind.getConstructor(String.class).newInstance("Already closed");

        RecordingObserver second = submit(request(1).id("b").of(1));
        scheduler.drain();

        assertThat(second.floats("OUT")).containsExactly(1);
        assertThat(instance.batches()).hasSize(2);
        assertCounted(new Timing(2, 0), Timing.NONE);
    }

    @Test
    void completesACancelledRequestWhoseEntryFails() {
        submit(request(1).of(1));
        scheduler.drain();
        cache.waits = true;
        cache.trouble = new OutOfMemoryError("Java heap space");
        RecordingObserver hit = new RecordingObserver();
        Cancellation cancellation = submit(request(1).of(1), hit);

        cancellation.cancel();
        cache.respondOnly();

        hit.assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(instance.batches()).hasSize(1);
    }

    /** The queue fails before it has accepted the request, or after. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void failsARequestThatCannotBeQueued(boolean taken) {
        cache.waits = true;
        RecordingObserver miss = submit(request(1).id("a").of(1));
        broken = true;
        brokenAfterwards = taken;

        cache.respondOnly();
        cache.respondOnly();

        miss.assertError(ErrorCode.INTERNAL, "internal error: java.lang.IllegalStateException: no place");
        assertThat(memory.bytesInUse()).isZero();
        scheduler.drain();
        assertThat(instance.batches()).isEmpty();
        assertThat(scheduler.model.meter().read().failures()).containsOnly(Map.entry(FailureReason.OTHER, 1L));
    }

    @Test
    void failsARequestThatCannotBeQueuedWithoutACache() {
        broken = true;
        cache.fails = true;

        RecordingObserver observer = submit(request(1).id("a").of(1));

        observer.assertError(ErrorCode.INTERNAL, "internal error: java.lang.IllegalStateException: no place");
        assertThat(memory.bytesInUse()).isZero();
    }

    @Test
    void cancelsARequestDuringItsLookup() {
        cache.waits = true;
        RecordingObserver miss = new RecordingObserver();
        Cancellation cancellation = submit(request(1).of(1), miss);

        cancellation.cancel();

        miss.assertError(ErrorCode.CANCELLED, "request was cancelled");
        cache.respondOnly();
        scheduler.drain();
        assertThat(instance.batches()).isEmpty();
    }

    @Test
    void releasesAHitAfterCancellation() {
        submit(request(1).of(1));
        scheduler.drain();
        cache.waits = true;
        RecordingObserver hit = new RecordingObserver();
        Cancellation cancellation = submit(request(1).of(1), hit);

        cancellation.cancel();
        cache.respondOnly();

        hit.assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertCounted(new Timing(1, 0), new Timing(1, 0));
    }

    @Test
    void cachesNoResponseOfACancelledRequest() {
        List<Cancellation> cancellations = new ArrayList<>();
        execution = batch -> {
            FakeInstance.copy(batch);
            cancellations.getFirst().cancel();
        };
        RecordingObserver observer = new RecordingObserver();
        cancellations.add(submit(request(1).of(1), observer));
        scheduler.drain();

        observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        assertThat(cache.entries).isEmpty();
    }

    @Test
    void hashesLargeInputsInTheBackground() {
        RecordingObserver observer = submit(request(0, LARGE).of(1));

        assertThat(cache.lookups).isEmpty();
        background.remove().run();
        assertThat(cache.lookups).hasSize(1);
        scheduler.drain();

        assertThat(observer.floats("OUT")).hasSize(LARGE);
    }

    /** The inputs of a cancelled request must not be released while they are read. */
    @Test
    void keepsTheInputsWhileTheyAreHashed() {
        Cancellation cancellation = submit(request(0, LARGE).of(1), new RecordingObserver());
        cancellation.cancel();

        assertThat(memory.bytesInUse()).isPositive();
        background.remove().run();
        assertThat(memory.bytesInUse()).isZero();
    }

    @Test
    void skipsTheLookupForUncacheableRequests() {
        MemorySegment target = Arena.ofAuto().allocate(4);
        submit(request(1).into("OUT", target).of(1));
        submit(request(1)
                .options(new RequestOptions(
                        0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(4), true, false))))
                .of(1));
        submit(Requests.to(settings, memory)
                .input(
                        "IN",
                        Tensor.of(DataType.FP32, Shape.of(1, 1), target, new MemoryPlace(MemoryPlace.Kind.PINNED, 0)))
                .of(1));

        assertThat(cache.lookups).hasSize(1); // the last one: pinned memory is the host's
        scheduler.drain();
    }

    @Test
    void deliversHitsThatNeedAnInstanceThreadInTheBackground() {
        submit(request(1).of(1));
        scheduler.drain();
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        ScheduledRequest bound = new ScheduledRequest(
                scheduler.model, scheduler.order, request(1).of(1), observer, 0);
        bound.requireInstanceThread();

        gate.submit(bound);

        assertThat(observer.hasEnded()).isFalse();
        background.remove().run();
        assertThat(observer.floats("OUT")).containsExactly(1);
    }

    @Test
    void leavesRefusalsToTheSubmission() {
        scheduler.queue.stop();
        RecordingObserver observer = submit(request(1).id("a").of(1));

        assertThat(submitting).containsExactly(true);
        assertThat(observer.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    private Requests request(float number) {
        return request(number, 1);
    }

    private Requests request(float first, int length) {
        return Requests.to(settings, memory).floats("IN", Shape.of(1, length), first);
    }

    private RecordingObserver submit(CheckedRequest checked) {
        RecordingObserver observer = new RecordingObserver();
        submit(checked, observer);
        return observer;
    }

    private Cancellation submit(CheckedRequest checked, RecordingObserver observer) {
        observers.add(observer);
        ScheduledRequest request = new ScheduledRequest(
                scheduler.model,
                scheduler.order,
                checked.arrivedAt(scheduler.clock.getAsLong()),
                observer,
                scheduler.clock.getAsLong());
        gate.submit(request);
        return request;
    }

    private void assertCounted(Timing misses, Timing hits) {
        assertThat(timings().cacheMiss()).as("misses").isEqualTo(misses);
        assertThat(timings().cacheHit()).as("hits").isEqualTo(hits);
    }

    private InferenceTimings timings() {
        return scheduler.model.meter().read().inferences();
    }

    private void enqueue(ScheduledRequest request, boolean duringSubmission) {
        submitting.add(duringSubmission);
        if (broken && !brokenAfterwards) {
            throw new IllegalStateException("no place");
        }
        if (scheduler.queue.offer(request, false) != OfferResult.Outcome.ACCEPTED) {
            request.refuse(SchedulerErrors.stopped(request.checked()));
        }
        if (broken) {
            throw new IllegalStateException("no place");
        }
    }

    /** Runs a check before it passes a response on. */
    private record Forwarding(RecordingObserver observer, Runnable look) implements ResponseObserver {
        @Override
        public void onResponse(InferResponse response) {
            look.run();
            observer.onResponse(response);
        }

        @Override
        public void onCompleted() {
            observer.onCompleted();
        }

        @Override
        public void onError(InferenceException error) {
            observer.onError(error);
        }
    }
}
