package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.ExecutionScope;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.rate.ExecutionLimiter;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads of instances that start with the first batch that needs them. */
@Timeout(60)
final class LateStartTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final StartedThreads started = new StartedThreads();
    private final List<Runnable> moved = new CopyOnWriteArrayList<>();
    private Executor unplaced = moved::add;
    private final List<FakeInstance> instances = new ArrayList<>();
    private final List<RecordingObserver> observers = new CopyOnWriteArrayList<>();

    /** A model whose threads the test knows. */
    private final class Served {
        final SteppedScheduler scheduler;
        final InstanceThreads threads = new InstanceThreads("t/", FatalErrorHandler.NONE, unplaced, started);

        Served(FakeInstance... those) {
            this(Instance.ThreadPlacement.ANYWHERE, those);
        }

        Served(Instance.ThreadPlacement placement, FakeInstance... those) {
            instances.addAll(List.of(those));
            scheduler = new SteppedScheduler(model, BatchPlanner.oneByOne(), memory);
            for (FakeInstance instance : those) {
                String name = "i" + scheduler.workers.size();
                scheduler.add(
                        ExecutionLimiter.OFF,
                        List.of(new Instance(name, Device.CPU, instance, RateProfile.NONE, placement)));
            }
            Warmup none = new Warmup(scheduler.scope, List.of(), those.length);
            threads.start(scheduler.workers, none);
            threads.serve(scheduler.workers::contains);
        }

        /** Adds a worker that is not started. */
        InstanceWorker add(FakeInstance instance) {
            instances.add(instance);
            scheduler.add(
                    ExecutionLimiter.OFF,
                    List.of(SteppedScheduler.slot("i" + scheduler.workers.size(), instance, RateProfile.NONE)));
            return scheduler.workers.getLast();
        }

        /** Checks the threads as the watchdog does some time later. */
        void check(long laterNanos) {
            threads.check(scheduler.clock.getAsLong() + laterNanos);
        }

        RecordingObserver submit() {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(request(), observer);
            return observer;
        }

        /** Runs a request on an idle instance, as a submitting thread does in direct execution. */
        RecordingObserver submitDirectly() {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            ScheduledRequest request = new ScheduledRequest(scheduler.model, null, request(), observer, 0);
            switch (scheduler.queue.offer(request, true)) {
                case InstanceHandle handle -> handle.directRun().run();
                case OfferResult other -> assertThat(other).isEqualTo(OfferResult.Outcome.ACCEPTED);
            }
            return observer;
        }

        void close() {
            observers.forEach(observer -> observer.await().close());
            scheduler.queue.stop();
            scheduler.model.drain().awaitUninterruptibly();
            threads.awaitEnd();
            threads.close();
        }
    }

    @AfterEach
    void everythingIsClosed() {
        assertThat(instances).allMatch(FakeInstance::isClosed);
        assertThat(instances).flatExtracting(FakeInstance::violations).isEmpty();
    }

    @Test
    void startsNoThreadForModelsWithoutRequests() {
        List<Served> models = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            models.add(new Served(instance(), instance()));
        }
        assertThat(models).allMatch(one -> !one.threads.alive().isEmpty());
        assertThat(models).noneMatch(one -> one.threads.areAllOverdue());

        models.forEach(Served::close);

        assertThat(started.names()).isEmpty();
        assertThat(models).noneMatch(one -> !one.threads.alive().isEmpty());
        assertThat(models).noneMatch(one -> one.scheduler.queue.isOpen());
    }

    @Test
    void startsOneThreadWithTheFirstRequestAndNoneWithTheNext() {
        Served served = new Served(instance(), instance());
        for (int i = 0; i < 5; i++) {
            served.submit().await();
            Threads.awaitIdle(Threads.named(started.names().getFirst()));
        }
        assertThat(started.names()).hasSize(1);
        assertThat(served.threads.alive()).isNotEmpty();

        served.close();

        assertThat(started.names()).hasSize(1);
    }

    @Test
    void startsOneThreadForEachInstanceAtMost() throws InterruptedException {
        for (int round = 0; round < 50; round++) {
            started.names().clear();
            Served served = new Served(instance(), instance(), instance());
            CountDownLatch together = new CountDownLatch(1);
            List<Thread> clients = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                clients.add(Thread.ofPlatform().start(() -> {
                    Latches.await(together);
                    served.scheduler.submit(request(), observer());
                }));
            }
            together.countDown();
            for (Thread client : clients) {
                client.join();
            }
            observers.forEach(RecordingObserver::await);

            assertThat(started.names()).doesNotHaveDuplicates().hasSizeBetween(1, 3);
            assertThat(observers).allMatch(observer -> observer.responses().size() == 1);
            served.close();
            observers.clear();
        }
    }

    @Test
    void startsThreadsWithoutTheInheritableValuesOfTheClient() {
        InheritableThreadLocal<String> secret = new InheritableThreadLocal<>();
        List<String> seen = new CopyOnWriteArrayList<>();
        Served served = new Served(new FakeInstance(batch -> {
            seen.add(String.valueOf(secret.get()));
            FakeInstance.copy(batch);
        }));
        secret.set("of the client");
        try {
            served.submit().await();
        } finally {
            secret.remove();
        }
        assertThat(seen).containsExactly("null");
        served.close();
    }

    /** A thread inherits the place of the one that starts it. */
    @Test
    void startsNoThreadOnAPlacedOne() {
        List<String> placed = new CopyOnWriteArrayList<>();
        Served inner = new Served(instance());
        RecordingObserver other = observer();
        Served outer = new Served(() -> placed.add(Thread.currentThread().getName()), new FakeInstance(batch -> {
            inner.scheduler.submit(request(), other);
            FakeInstance.copy(batch);
        }));

        outer.submit().await();

        assertThat(placed).containsExactly("t/i0");
        assertThat(started.names()).hasSize(1);
        assertThat(other.isSilent()).isTrue();
        moved.forEach(Runnable::run);
        assertThat(other.await().responses()).hasSize(1);
        assertThat(started.names()).hasSize(2);
        assertThat(placed).hasSize(1);
        outer.close();
        inner.close();
    }

    @Test
    void refusesRequestsIfTheStartCannotBeMoved() {
        RecordingObserver other = observer();
        unplaced = task -> {
            throw new OutOfMemoryError("no task");
        };
        Served failing = new Served(instance());
        Served outer = new Served(() -> {}, new FakeInstance(batch -> {
            failing.scheduler.submit(request(), other);
            FakeInstance.copy(batch);
        }));

        outer.submit().await();

        assertThat(other.await().error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        List.of(outer, failing).forEach(Served::close);
    }

    @Test
    void refusesRequestsUntilAThreadCanBeStarted() {
        Served served = new Served(instance(), instance());
        started.fail(2);

        for (int i = 0; i < 2; i++) {
            RecordingObserver refused = served.submit();
            assertThat(refused.error().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(refused.error())
                    .hasMessage("no thread could be started for an instance of model 'm' version 1: "
                            + StartedThreads.NO_MEMORY
                            + " (expected: memory and process limits for one thread more; retry later)");
        }
        assertThat(started.names()).isEmpty();
        assertThat(served.threads.alive()).isNotEmpty();
        assertThat(served.scheduler.queue.waiting()).isZero();

        assertThat(served.submit().await().responses()).hasSize(1);
        assertThat(started.names()).hasSize(1);
        served.close();
    }

    @Test
    void leavesRequestsToAnotherInstanceIfItsThreadCannotBeStarted() {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch open = new CountDownLatch(1);
        FakeInstance busy = new FakeInstance(batch -> {
            entered.countDown();
            Latches.await(open);
            FakeInstance.copy(batch);
        });
        Served served = new Served(busy, instance());
        served.submit();
        Latches.await(entered);
        started.fail(1);
        RecordingObserver waiting = served.submit();
        assertThat(waiting.isSilent()).isTrue();
        assertThat(served.scheduler.queue.waiting()).isEqualTo(1);

        open.countDown();

        assertThat(waiting.await().responses()).hasSize(1);
        assertThat(started.names()).hasSize(1);
        served.close();
    }

    @Test
    void leavesRequestsToTheInstanceInPlaceOfARetiredOne() {
        Served served = new Served(instance(), instance());
        InstanceWorker first = served.scheduler.workers.getFirst();
        started.failAfter(first::retire);

        RecordingObserver observer = served.submit();

        assertThat(observer.await().responses()).hasSize(1);
        assertThat(started.names()).containsExactly("t/i1");
        served.threads.retire(first::equals);
        assertThat(instances.getFirst().isClosed()).isTrue();
        served.close();
    }

    @Test
    void wakesAnIdleInstanceWithAThreadFirst() {
        Served served = new Served(instance(), instance(), instance());
        served.submit().await();
        Threads.awaitIdle(Threads.named(started.names().getFirst()));
        started.fail(Integer.MAX_VALUE); // of the others no thread can be started

        for (int i = 0; i < 3; i++) {
            assertThat(served.submit().await().responses()).hasSize(1);
            Threads.awaitIdle(Threads.named(started.names().getFirst()));
        }
        served.close();
    }

    @Test
    void startsNoThreadForDirectExecutions() {
        Served served = new Served(instance());
        for (int i = 0; i < 3; i++) {
            assertThat(served.submitDirectly().await().responses()).hasSize(1);
        }
        assertThat(started.names()).isEmpty();

        assertThat(served.submit().await().responses()).hasSize(1);
        assertThat(started.names()).hasSize(1);
        served.close();
    }

    @Test
    void startsAThreadForWhatADirectExecutionLeaves() {
        List<RecordingObserver> later = new CopyOnWriteArrayList<>();
        Served[] served = new Served[1];
        served[0] = new Served(new FakeInstance(batch -> {
            if (later.isEmpty()) {
                for (int i = 0; i < 6; i++) { // more than a submitting thread executes in a row
                    later.add(served[0].submit());
                }
            }
            FakeInstance.copy(batch);
        }));

        served[0].submitDirectly();

        later.forEach(observer ->
                assertThat(observer.await().responses()).as("responses").hasSize(1));
        assertThat(started.names()).hasSize(1);
        served[0].close();
    }

    @Test
    void failsWhatADirectExecutionLeavesIfNoThreadCanBeStarted() {
        List<RecordingObserver> later = new CopyOnWriteArrayList<>();
        Served[] served = new Served[1];
        served[0] = new Served(new FakeInstance(batch -> {
            if (later.isEmpty()) {
                for (int i = 0; i < 6; i++) {
                    later.add(served[0].submit());
                }
            }
            FakeInstance.copy(batch);
        }));
        started.fail(1);

        RecordingObserver first = served[0].submitDirectly();

        assertThat(first.responses()).hasSize(1);
        assertThat(later).allMatch(observer -> observer.await().hasEnded());
        assertThat(later)
                .filteredOn(observer -> observer.responses().isEmpty())
                .isNotEmpty()
                .allMatch(observer -> observer.error().code() == ErrorCode.UNAVAILABLE);
        served[0].close();
    }

    @Test
    void closesRetiredInstancesWithoutAThread() {
        Served served = new Served(instance(), instance());
        InstanceWorker retired = served.scheduler.workers.getFirst();

        served.threads.retire(retired::equals);

        assertThat(instances.getFirst().isClosed()).isTrue();
        assertThat(instances.getLast().isClosed()).isFalse();
        assertThat(served.threads.workers()).doesNotContain(retired);
        assertThat(served.submit().await().responses()).hasSize(1);
        assertThat(instances.getLast().batches()).hasSize(1);
        served.close();
        assertThat(started.names()).containsExactly("t/i1");
    }

    @Test
    void closesARetiredInstanceAfterItsDirectExecution() throws InterruptedException {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch open = new CountDownLatch(1);
        Served served = new Served(new FakeInstance(batch -> {
            entered.countDown();
            Latches.await(open);
            FakeInstance.copy(batch);
        }));
        Thread submitting = Thread.ofPlatform().start(served::submitDirectly);
        Latches.await(entered);

        Thread retiring = Thread.ofPlatform().start(() -> served.threads.retire(worker -> true));
        Threads.awaitAsleep(retiring);
        assertThat(instances.getFirst().isClosed()).isFalse();
        open.countDown();
        submitting.join();
        retiring.join();
        assertThat(instances.getFirst().isClosed())
                .as("its response is still read")
                .isFalse();
        observers.forEach(observer -> observer.await().close());

        Threads.await("closed", instances.getFirst()::isClosed);
        assertThat(started.names()).isEmpty();
        served.close();
    }

    @Test
    void endsAThreadWithoutWorkAndStartsAnotherWithTheNextRequest() throws InterruptedException {
        Served served = new Served(instance());
        served.submit().await();
        Thread first = Threads.named("t/i0");
        Threads.awaitIdle(first);

        served.check(InstanceThreads.IDLE_NANOS - 1);
        Threads.awaitIdle(first);
        served.check(InstanceThreads.IDLE_NANOS);
        first.join();

        assertThat(served.threads.alive()).isNotEmpty();
        assertThat(instances.getFirst().isClosed()).isFalse();
        assertThat(started.names()).hasSize(1);
        assertThat(served.submitDirectly().await().responses()).hasSize(1);
        assertThat(started.names()).as("a direct execution needs none").hasSize(1);
        assertThat(served.submit().await().responses()).hasSize(1);
        assertThat(started.names()).containsExactly("t/i0", "t/i0");
        served.close();
    }

    @Test
    void endsThreadsOfAWarmupToo() throws InterruptedException {
        Served served = new Served();
        InstanceWorker worker = served.add(instance());
        Warmup.Sample sample = new Warmup.Sample("w", 1, () -> List.of(request()));
        served.threads.start(List.of(worker), new Warmup(served.scheduler.scope, List.of(sample), 1));
        served.threads.serve(worker::equals);
        Thread first = Threads.named("t/i0");
        Threads.awaitIdle(first);

        served.check(InstanceThreads.IDLE_NANOS);
        first.join();

        assertThat(served.submit().await().responses()).hasSize(1);
        assertThat(started.names()).containsExactly("t/i0", "t/i0");
        served.close();
    }

    @Test
    void closesAnInstanceWhoseThreadHasEnded() throws InterruptedException {
        Served served = new Served(instance(), instance());
        served.submit().await().close();
        Thread first = Threads.named(started.names().getFirst());
        Threads.awaitIdle(first);
        served.check(InstanceThreads.IDLE_NANOS);
        first.join();

        InstanceWorker used = served.scheduler.workers.stream()
                .filter(worker -> ("t/" + worker.name()).equals(first.getName()))
                .findFirst()
                .orElseThrow();
        served.threads.retire(used::equals);

        assertThat(instances).filteredOn(FakeInstance::isClosed).hasSize(1);
        assertThat(served.threads.workers()).doesNotContain(used);
        assertThat(served.submit().await().responses()).hasSize(1);
        served.close();
    }

    @Test
    void keepsAThreadWhoseExecutionTakesLong() throws InterruptedException {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch open = new CountDownLatch(1);
        Served served = new Served(new FakeInstance(batch -> {
            entered.countDown();
            Latches.await(open);
            FakeInstance.copy(batch);
        }));
        RecordingObserver observer = served.submit();
        Latches.await(entered);

        served.check(10 * InstanceThreads.IDLE_NANOS);
        open.countDown();

        assertThat(observer.await().responses()).hasSize(1);
        Threads.awaitIdle(Threads.named("t/i0"));
        assertThat(started.names()).hasSize(1);
        served.close();
    }

    /** No request is lost between the end of a thread and the start of the next, whoever is first. */
    @Tag("slow")
    @Test
    void losesNoRequestWhileThreadsEnd() throws InterruptedException {
        Served served = new Served(instance(), instance());
        AtomicBoolean ended = new AtomicBoolean();
        Thread resting = Thread.ofPlatform().start(() -> {
            while (!ended.get()) {
                served.check(InstanceThreads.IDLE_NANOS);
            }
        });
        List<Thread> clients = new ArrayList<>();
        List<Throwable> failures = new CopyOnWriteArrayList<>();
        for (int i = 0; i < 3; i++) {
            boolean direct = i == 0;
            clients.add(Thread.ofPlatform()
                    .uncaughtExceptionHandler((_, e) -> failures.add(e))
                    .start(() -> {
                        for (int n = 0; n < 1000; n++) {
                            RecordingObserver observer = direct ? served.submitDirectly() : served.submit();
                            assertThat(observer.await().responses()).hasSize(1);
                            observer.close();
                            observers.remove(observer);
                        }
                    }));
        }
        for (Thread client : clients) {
            client.join();
        }
        ended.set(true);
        resting.join();
        assertThat(failures).isEmpty();
        assertThat(started.names().size()).as("threads end meanwhile").isGreaterThan(10);
        served.close();
    }

    /** The close, and the end of a thread without work, meet. */
    @Test
    void closesWhileThreadsEnd() throws InterruptedException {
        for (int round = 0; round < 200; round++) {
            Served served = new Served(instance(), instance());
            served.submit().await();
            boolean retires = round % 2 == 0;
            Thread resting = Thread.ofPlatform().start(() -> served.check(InstanceThreads.IDLE_NANOS));
            if (retires) {
                served.threads.retire(served.scheduler.workers.getFirst()::equals);
            }
            observers.forEach(RecordingObserver::close);
            observers.clear();
            served.close();
            resting.join();
        }
    }

    @Test
    void countsAsFreeForTheWatchdog() {
        Served served = new Served(instance());
        ExecutionWatch watch = new ExecutionWatch(
                served.scheduler.model,
                served.threads,
                ExecutionScope.DIRECT_CALLBACKS,
                Duration.ofSeconds(1),
                Duration.ofSeconds(1));

        watch.check(Duration.ofDays(1).toNanos());

        assertThat(watch.total()).isZero();
        served.close();
    }

    private static FakeInstance instance() {
        return new FakeInstance(FakeInstance::copy);
    }

    private RecordingObserver observer() {
        RecordingObserver observer = new RecordingObserver();
        observers.add(observer);
        return observer;
    }

    private CheckedRequest request() {
        return Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1);
    }
}
