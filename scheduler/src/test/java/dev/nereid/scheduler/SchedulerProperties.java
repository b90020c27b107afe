package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.cache.CacheAccess;
import dev.nereid.scheduler.cache.CachedSubmission;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.RequestView;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.IntRange;
import org.jspecify.annotations.Nullable;

/** Properties of every schedule of requests, cancellations, executions and time. */
public final class SchedulerProperties {
    private static final int MAX_BATCH = 4;
    private static final long DELAY = 100;

    /** One thing that happens. */
    sealed interface Event {
        record Submit(int items, int width, ExpectedRequest.Options options) implements Event {}

        record Cancel(int index) implements Event {}

        record Step(int worker, Backend backend) implements Event {}

        record Pass(int nanos, boolean expires) implements Event {}

        record Finish(int index) implements Event {}

        record Forget() implements Event {}

        record Availability(int worker, boolean isAvailable) implements Event {}
    }

    /** The behavior of a backend with a batch. */
    enum Backend {
        RESPOND,
        ALIAS,
        REFUSE,
        CRASH,
        FAIL_FIRST,
        DEFER,
        /** Detaches every other request, and leases its inputs. */
        DETACH,
        /** Responds to every other request, and has the others executed again. */
        AGAIN,
        AGAIN_AND_FAIL,
        AGAIN_AND_DEFER
    }

    /** How often a backend has a request executed again, at most. */
    private static final int MAX_AGAIN = 3;

    /** The largest number of deferred executions of an instance whose requests are executed again. */
    private static final int MAX_DEFERRED = 2;

    @Provide
    Arbitrary<List<Event>> schedules() {
        Arbitrary<ExpectedRequest.Options> options = Combinators.combine(
                        Arbitraries.of(false, false, true),
                        Arbitraries.integers().between(0, 4),
                        Arbitraries.of(0, 0, 1, 2))
                .as(ExpectedRequest.Options::new);
        Arbitrary<Event> submit = Combinators.combine(
                        Arbitraries.integers().between(1, MAX_BATCH), Arbitraries.of(1, 1, 1, 2), options)
                .as(Event.Submit::new);
        Arbitrary<Event> cancel = Arbitraries.integers().between(0, 100).map(Event.Cancel::new);
        Arbitrary<Event> step = Combinators.combine(Arbitraries.integers().between(0, 1), Arbitraries.of(Backend.class))
                .as(Event.Step::new);
        Arbitrary<Event> pass = Combinators.combine(
                        Arbitraries.oneOf(
                                Arbitraries.integers().between(0, 400),
                                Arbitraries.integers().between(900, 1_100)),
                        Arbitraries.of(true, false))
                .as(Event.Pass::new);
        Arbitrary<Event> finish = Arbitraries.integers().between(0, 100).map(Event.Finish::new);
        Arbitrary<Event> availability = Combinators.combine(
                        Arbitraries.integers().between(0, 1), Arbitraries.of(true, true, false))
                .as(Event.Availability::new);
        return Arbitraries.frequencyOf(
                        Tuple.of(5, submit),
                        Tuple.of(1, cancel),
                        Tuple.of(3, step),
                        Tuple.of(2, pass),
                        Tuple.of(1, finish),
                        Tuple.of(1, Arbitraries.just(new Event.Forget())),
                        Tuple.of(1, availability))
                .list()
                .ofMaxSize(60);
    }

    @Provide
    Arbitrary<QueuePolicy> policies() {
        return Combinators.combine(
                        Arbitraries.of(QueuePolicy.TimeoutAction.class),
                        Arbitraries.of(0L, 500L, 2_000L),
                        Arbitraries.of(true, false),
                        Arbitraries.of(0L, 0L, 1L, 3L))
                .as(QueuePolicy::new);
    }

    @Provide
    public Arbitrary<PriorityPolicy> priorities() {
        return Combinators.combine(
                        Arbitraries.of(0L, 1L, 3L), policies(), policies().optional(0.5))
                .as((levels, policy, ofFirst) -> new PriorityPolicy(
                        levels,
                        Math.min(levels, 2),
                        policy,
                        ofFirst.map(own -> Map.of(1L, own)).orElse(Map.of())));
    }

    @Property
    void keepsItsPromises(
            @ForAll("schedules") List<Event> schedule,
            @ForAll("priorities") PriorityPolicy priorities,
            @ForAll boolean ordered,
            @ForAll boolean cached,
            @ForAll @IntRange(min = 0, max = 1) int delayed,
            @ForAll @IntRange(min = 1, max = MAX_BATCH) int preferred) {
        BatchPlanner planner = new BatchPlanner(MAX_BATCH, List.of(preferred), delayed * DELAY);
        Run run = new Run(planner, priorities, ordered, cached, delayed * DELAY);
        schedule.forEach(run::on);
        run.end();
    }

    @Property
    void keepsItsPromisesWithoutBatching(
            @ForAll("schedules") List<Event> schedule,
            @ForAll("priorities") PriorityPolicy priorities,
            @ForAll boolean ordered,
            @ForAll boolean cached) {
        Run run = new Run(BatchPlanner.oneByOne(), priorities, ordered, cached, 0);
        schedule.forEach(run::on);
        run.end();
    }

    @Property
    void keepsItsPromisesWithReexecution(
            @ForAll("schedules") List<Event> schedule,
            @ForAll("priorities") PriorityPolicy priorities,
            @ForAll @IntRange(min = 0, max = 1) int delayed,
            @ForAll @IntRange(min = 1, max = MAX_BATCH) int preferred) {
        BatchPlanner planner = new BatchPlanner(MAX_BATCH, List.of(preferred), delayed * DELAY);
        Run run = new Run(planner, priorities, delayed * DELAY);
        schedule.forEach(run::on);
        run.end();
    }

    /**
     * A batching strategy, and the events during its evaluation. Each event occurs once in a number of evaluations, 0
     * for never.
     */
    record Meddling(int refuse, int crash, int cancel, int submit, int pass, int block) {
        static boolean isTime(int every, int question) {
            return every > 0 && question % every == 0;
        }
    }

    @Provide
    Arbitrary<Meddling> meddlings() {
        Arbitrary<Integer> every = Arbitraries.integers().between(0, 5);
        return Combinators.combine(every, every, every, every, every, every).as(Meddling::new);
    }

    @Property
    void keepsItsPromisesWithABatchingStrategy(
            @ForAll("schedules") List<Event> schedule,
            @ForAll("priorities") PriorityPolicy priorities,
            @ForAll("meddlings") Meddling meddling,
            @ForAll boolean ordered,
            @ForAll @IntRange(min = 0, max = 1) int delayed,
            @ForAll @IntRange(min = 1, max = MAX_BATCH) int preferred) {
        BatchPlanner planner = new BatchPlanner(MAX_BATCH, List.of(preferred), delayed * DELAY);
        Run run = new Run(planner, priorities, ordered, false, delayed * DELAY, meddling);
        schedule.forEach(run::on);
        run.end();
    }

    /** A deferred execution of a worker, and the requests that are executed again when it ends. */
    private record Deferred(int worker, DeferredExecution handle, List<Integer> again) {}

    /** A request that its sender has detached from its batch. */
    private record Detached(InferenceRequest request, ResponseSender sender, Runnable lease) {
        /** Answers in one of several ways, and ends the lease. */
        void finish() {
            int way = Integer.parseInt(request.id()) % 4;
            Tensor input = request.requireInput("IN");
            InferenceResponse forgotten = sender.newResponse();
            forgotten.allocate("OUT", input.type(), input.shape());
            if (way == 0) {
                sender.fail(new BackendException(ErrorCode.NOT_FOUND, "failed"));
            } else if (way == 1) {
                InferenceResponse response = sender.newResponse();
                response.put("OUT", input);
                sender.send(response);
                sender.complete();
            } else {
                InferenceResponse response = sender.newResponse();
                response.allocate("OUT", input.type(), input.shape()).data().copyFrom(input.data());
                sender.complete(response);
            }
            assertThat(input.data().byteSize())
                    .isEqualTo(input.data().asReadOnly().toArray(ValueLayout.JAVA_BYTE).length);
            lease.run();
            lease.run();
        }
    }

    /** A schedule on its way. */
    private static final class Run {
        private final ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(MAX_BATCH)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .build();
        private final LeakCheckingMemory memory = new LeakCheckingMemory();
        private final List<FakeInstance> instances =
                List.of(new FakeInstance(this::execute), new FakeInstance(this::execute));
        private final SteppedScheduler scheduler;
        private final long delay;
        private final ExpectedRequests expected = new ExpectedRequests(MAX_BATCH);
        private final List<Cancellation> cancellations = new ArrayList<>();
        private final PriorityPolicy priorities;
        private final boolean ordered;
        private final boolean cached;
        private final FakeCache cache = new FakeCache();
        private final CachedSubmission gate;
        private final Set<Integer> hits = new HashSet<>();
        private int executions;
        private final List<Deferred> deferred = new ArrayList<>();
        private final boolean iterative;
        private final List<Detached> detached = new ArrayList<>();

        /** How often each request was executed again. */
        private final Map<Integer, Integer> returns = new HashMap<>();

        /** The requests that the current execution has executed again. */
        private List<Integer> again = List.of();

        private int stepped;

        /** {@code true} for each instance that is kept from work. */
        private final boolean[] unavailable = new boolean[2];

        private final @Nullable FakeStrategy strategy;
        private Backend backend = Backend.RESPOND;
        private int questions;
        private boolean ending;

        Run(BatchPlanner planner, PriorityPolicy priorities, boolean ordered, boolean cached, long delay) {
            this(planner, priorities, ordered, cached, delay, null);
        }

        /** Creates a run with re-execution. */
        Run(BatchPlanner planner, PriorityPolicy priorities, long delay) {
            this(planner, priorities, false, false, delay, null, true);
        }

        Run(
                BatchPlanner planner,
                PriorityPolicy priorities,
                boolean ordered,
                boolean cached,
                long delay,
                @Nullable Meddling meddling) {
            this(planner, priorities, ordered, cached, delay, meddling, false);
        }

        private Run(
                BatchPlanner planner,
                PriorityPolicy priorities,
                boolean ordered,
                boolean cached,
                long delay,
                @Nullable Meddling meddling,
                boolean iterative) {
            this.iterative = iterative;
            this.strategy = meddling == null ? null : new FakeStrategy(request -> include(request, meddling));
            this.delay = delay;
            this.priorities = priorities;
            this.ordered = ordered;
            this.cached = cached;
            this.scheduler = iterative
                    ? SteppedScheduler.iterative(
                            model,
                            planner,
                            priorities,
                            memory,
                            ExecutionTraits.DEFAULT.withMaxDeferred(MAX_DEFERRED),
                            instances.get(0),
                            instances.get(1))
                    : new SteppedScheduler(
                            model,
                            planner,
                            new BatchingPolicy(true, List.of(), 0, ordered, priorities),
                            memory,
                            ExecutionTraits.DEFAULT.withMaxDeferred(Integer.MAX_VALUE),
                            strategy,
                            instances.get(0),
                            instances.get(1));
            this.gate = new CachedSubmission(
                    scheduler.model,
                    new CacheAccess(cache, Runnable::run),
                    scheduler.clock,
                    (request, submitting) -> scheduler.enqueue(request));
        }

        void on(Event event) {
            switch (event) {
                case Event.Submit(int items, int width, ExpectedRequest.Options options) ->
                    submit(items, width, options);
                case Event.Cancel(int index) -> cancel(index);
                case Event.Step(int worker, Backend what) -> step(worker, what);
                case Event.Pass(int nanos, boolean expires) -> pass(nanos, expires);
                case Event.Finish(int index) -> finish(index);
                case Event.Forget() -> cache.entries.clear();
                case Event.Availability(int worker, boolean isAvailable) -> availability(worker, isAvailable);
            }
            if (ordered) {
                expected.checkOrder();
            }
        }

        private void availability(int worker, boolean isAvailable) {
            unavailable[worker] = !isAvailable;
            if (isAvailable) {
                instances.get(worker).availability.available();
            } else {
                instances.get(worker).availability.unavailable("for a test");
            }
        }

        private void submit(int items, int width, ExpectedRequest.Options options) {
            int index = cancellations.size();
            long now = scheduler.clock.getAsLong();
            Requests builder = Requests.to(model, memory)
                    .id(String.valueOf(index))
                    .priority(options.priority())
                    .timeoutMicros(options.timeoutMicros())
                    .floats("IN", Shape.of(items, width), content(index));
            if (options.hasDeadline()) {
                builder.deadline(now + ExpectedRequest.DEADLINE_NANOS);
            }
            long level = priorities.level(options.priority());
            QueuePolicy policy = priorities.policy(level);
            long before = expected.waiting(level);
            RecordingObserver observer =
                    expected.add(ExpectedRequest.at(now, index, level, policy, items, width, options));
            int hitsBefore = cache.hits;
            cancellations.add(send(builder.of(items), observer, now));
            if (cache.hits > hitsBefore) {
                hits.add(index);
                expected.executed().add(index); // takes its place in the order of responses, and bypasses the queue
                assertThat(observer.hasEnded() || ordered)
                        .as("completed at once")
                        .isTrue();
                return;
            }
            assertThat(observer.hasEnded()).as("refused if full").isEqualTo(!policy.admits(before));
            if (observer.hasEnded()) {
                observer.assertError(ErrorCode.UNAVAILABLE, "[request id: " + index + "] Exceeds maximum queue size");
            }
        }

        private Cancellation send(CheckedRequest checked, RecordingObserver observer, long now) {
            if (!cached) {
                return scheduler.submit(checked, observer);
            }
            ScheduledRequest request =
                    new ScheduledRequest(scheduler.model, scheduler.order, checked.arrivedAt(now), observer, now);
            gate.submit(request);
            return request;
        }

        /** With a cache, some requests are equal. */
        private int content(int index) {
            return cached ? index % 3 : index;
        }

        /** Says what the rule says of a request, while others come and go. */
        private boolean include(RequestView request, Meddling meddling) {
            questions++;
            int index = Integer.parseInt(request.id());
            assertThat(request.input("IN").orElseThrow().data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
                    .as("memory of a candidate")
                    .isEqualTo((float) content(index));
            if (Meddling.isTime(meddling.cancel(), questions)) {
                cancel(questions);
            }
            if (Meddling.isTime(meddling.submit(), questions) && !ending) {
                submit(1, 1, new ExpectedRequest.Options(false, questions % 4, 0));
            }
            if (Meddling.isTime(meddling.pass(), questions)) {
                scheduler.clock.advanceNanos(70);
            }
            if (Meddling.isTime(meddling.block(), questions)) {
                availability(stepped, false);
            }
            if (Meddling.isTime(meddling.crash(), questions)) {
                throw new IllegalStateException("crashed");
            }
            return !Meddling.isTime(meddling.refuse(), questions);
        }

        private void pass(int nanos, boolean expires) {
            if (!expires) {
                scheduler.clock.advanceNanos(nanos);
                return;
            }
            scheduler.advance(nanos);
            expected.checkTime(scheduler.clock.getAsLong());
        }

        private void cancel(int index) {
            if (!cancellations.isEmpty()) {
                int which = index % cancellations.size();
                cancellations.get(which).cancel();
                assertThat(expected.waits(which)).as("completed at once").isFalse();
            }
        }

        private void step(int worker, Backend what) {
            backend = what;
            boolean full = isFull(worker);
            boolean worked = step(worker);
            assertThat(full && worked).as("more than %s deferred", MAX_DEFERRED).isFalse();
            if (!worked && !full && !unavailable[worker]) {
                expected.checkDelay(scheduler.clock.getAsLong(), delay);
            }
        }

        private boolean isFull(int worker) {
            return iterative
                    && deferred.stream().filter(one -> one.worker == worker).count() >= MAX_DEFERRED;
        }

        private boolean step(int worker) {
            stepped = worker;
            again = List.of();
            boolean worked = scheduler.workers.get(worker).step();
            returned(again);
            return worked;
        }

        private void returned(List<Integer> indices) {
            indices.forEach(index -> expected.again(index, scheduler.clock.getAsLong()));
        }

        private void finish(int index) {
            if (!deferred.isEmpty()) {
                Deferred one = deferred.remove(index % deferred.size());
                one.handle.complete();
                returned(one.again);
            } else if (!detached.isEmpty()) {
                detached.remove(index % detached.size()).finish();
            }
        }

        /** Has some requests executed again, in the order of the batch, unless that was too often. */
        private List<Integer> again(Batch batch) {
            List<Integer> chosen = new ArrayList<>();
            for (InferenceRequest request : batch.requests()) {
                int index = Integer.parseInt(request.id());
                int before = returns.getOrDefault(index, 0);
                if (iterative && before < index % (MAX_AGAIN + 1)) {
                    request.reschedule();
                    returns.put(index, before + 1);
                    chosen.add(index);
                }
            }
            return chosen;
        }

        private void execute(Batch batch) {
            assertThat(unavailable[stepped])
                    .as("executed by an unavailable instance")
                    .isFalse();
            expected.begin(batch, scheduler.clock.getAsLong());
            executions +=
                    backend == Backend.REFUSE || backend == Backend.CRASH || backend == Backend.AGAIN_AND_FAIL ? 0 : 1;
            if (strategy != null) {
                assertThat(strategy.isForming()).as("ended before").isFalse();
                List<InferenceRequest> others =
                        batch.requests().subList(1, batch.requests().size());
                assertThat(strategy.included())
                        .containsAll(others.stream().map(InferenceRequest::id).toList());
            }
            switch (backend) {
                case RESPOND -> FakeInstance.copy(batch);
                case ALIAS -> batch.put("OUT", batch.gather("IN"));
                case REFUSE -> throw new BackendException(ErrorCode.UNAVAILABLE, "refused");
                case CRASH -> throw new IllegalStateException("crashed");
                case FAIL_FIRST -> {
                    FakeInstance.copy(batch);
                    batch.requests().getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "failed"));
                }
                case DEFER -> {
                    deferred.add(new Deferred(stepped, batch.defer(), List.of()));
                    FakeInstance.copy(batch);
                }
                case DETACH -> {
                    FakeInstance.copy(batch); // dropped for those that are detached
                    for (int i = 0; i < batch.requests().size(); i += 2) {
                        InferenceRequest request = batch.requests().get(i);
                        detached.add(new Detached(request, request.sender(), request.leaseInputs()));
                    }
                }
                case AGAIN -> {
                    FakeInstance.copy(batch);
                    again = again(batch);
                }
                case AGAIN_AND_FAIL -> {
                    again(batch);
                    throw new BackendException(ErrorCode.UNAVAILABLE, "failed after all");
                }
                case AGAIN_AND_DEFER -> {
                    FakeInstance.copy(batch);
                    deferred.add(new Deferred(stepped, batch.defer(), again(batch)));
                }
            }
        }

        /** Stops, executes the rest, and checks that all requests are completed and all memory is released. */
        void end() {
            ending = true;
            scheduler.queue.stop();
            boolean more = true;
            while (more) {
                more = step(0) || step(1) || !deferred.isEmpty() || !detached.isEmpty();
                finish(0);
            }
            for (int i = 0; i < cancellations.size(); i++) {
                RecordingObserver observer = expected.observer(i);
                observer.check();
                assertThat(observer.hasEnded()).as("request %s completed", i).isTrue();
                checkContent(i);
                observer.close();
            }
            checkFigures();
            instances.forEach(instance -> assertThat(instance.violations()).isEmpty());
            if (strategy != null) {
                assertThat(strategy.violations()).isEmpty();
            }
            assertThat(expected.executed()).doesNotHaveDuplicates();
            assertThat(scheduler.inFlight()).isZero();
            assertThat(scheduler.queue.waiting()).isZero();
            assertThat(cache.open).as("entries that are read").isZero();
            memory.close();
        }

        /** Counts again the events of the observers. */
        private void checkFigures() {
            MeterReading figures = scheduler.model.meter().read();
            List<RecordingObserver> failed = expected.observers().stream()
                    .filter(observer -> observer.responses().isEmpty())
                    .toList();
            long cancelled = failed.stream()
                    .filter(observer -> observer.error().code() == ErrorCode.CANCELLED)
                    .count();
            assertThat(figures.inferences().fail().count()).isEqualTo(failed.size());
            assertThat(figures.inferences().success().count()).isEqualTo(cancellations.size() - failed.size());
            assertThat(figures.failures().getOrDefault(FailureReason.CANCELED, 0L))
                    .isEqualTo(cancelled);
            assertThat(figures.failures().values().stream()
                            .mapToLong(Long::longValue)
                            .sum())
                    .isEqualTo(failed.size());
            checkWork(figures);
        }

        private void checkWork(MeterReading figures) {
            long items = expected.all().stream()
                    .filter(one -> !hits.contains(one.index()))
                    .filter(one -> !expected.observer(one.index()).responses().isEmpty())
                    .mapToLong(ExpectedRequest::items)
                    .sum();
            long computed = expected.observers().stream()
                            .filter(observer -> !observer.responses().isEmpty())
                            .count()
                    - hits.size();
            InferenceTimings timings = figures.inferences();
            assertThat(figures.executions().inferenceCount()).isEqualTo(items);
            assertThat(figures.executions().executionCount()).isEqualTo(executions);
            assertThat(figures.executions().batches().stream()
                            .mapToLong(batch -> batch.compute().infer().count())
                            .sum())
                    .isEqualTo(executions);
            assertThat(timings.queue().count()).isEqualTo(computed + hits.size());
            assertThat(timings.compute().input().count()).isEqualTo(computed);
            assertThat(timings.compute().infer().count()).isEqualTo(computed);
            assertThat(timings.compute().output().count()).isEqualTo(computed);
            assertThat(timings.cacheHit().count()).isEqualTo(hits.size());
            assertThat(timings.cacheMiss().count()).isEqualTo(cache.misses);
        }

        private void checkContent(int index) {
            if (!expected.observer(index).responses().isEmpty()) {
                float[] content = expected.observer(index).floats("OUT");
                for (int i = 0; i < content.length; i++) {
                    assertThat(content[i]).isEqualTo(content(index) + i);
                }
            }
        }
    }
}
