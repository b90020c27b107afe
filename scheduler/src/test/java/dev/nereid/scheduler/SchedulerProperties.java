package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.IntRange;

/** What holds for every schedule of calls, withdrawals, executions and time. */
final class SchedulerProperties {
    private static final int MAX_BATCH = 4;
    private static final long DELAY = 100;
    private static final long PATIENCE = 1_000;

    /** One thing that happens. */
    sealed interface Event {
        record Submit(int items, int width, boolean impatient) implements Event {}

        record Withdraw(int index) implements Event {}

        record Step(int worker, Backend backend) implements Event {}

        record Pass(int nanos) implements Event {}

        record Finish(int index) implements Event {}
    }

    /** What a backend does with a batch. */
    enum Backend {
        ANSWER,
        ALIAS,
        REFUSE,
        CRASH,
        FAIL_FIRST,
        DEFER
    }

    @Provide
    Arbitrary<List<Event>> schedules() {
        Arbitrary<Event> submit = Combinators.combine(
                        Arbitraries.integers().between(1, MAX_BATCH),
                        Arbitraries.of(1, 1, 1, 2),
                        Arbitraries.of(false, false, true))
                .as(Event.Submit::new);
        Arbitrary<Event> withdraw = Arbitraries.integers().between(0, 100).map(Event.Withdraw::new);
        Arbitrary<Event> step = Combinators.combine(Arbitraries.integers().between(0, 1), Arbitraries.of(Backend.class))
                .as(Event.Step::new);
        Arbitrary<Event> pass = Arbitraries.integers().between(0, 400).map(Event.Pass::new);
        Arbitrary<Event> finish = Arbitraries.integers().between(0, 100).map(Event.Finish::new);
        return Arbitraries.frequencyOf(
                        Tuple.of(5, submit),
                        Tuple.of(1, withdraw),
                        Tuple.of(3, step),
                        Tuple.of(2, pass),
                        Tuple.of(1, finish))
                .list()
                .ofMaxSize(60);
    }

    @Property
    void keepsItsPromises(
            @ForAll("schedules") List<Event> schedule,
            @ForAll @IntRange(min = 0, max = 1) int delayed,
            @ForAll @IntRange(min = 1, max = MAX_BATCH) int preferred) {
        Run run = new Run(new BatchPlanner(MAX_BATCH, List.of(preferred), delayed * DELAY), delayed * DELAY);
        schedule.forEach(run::on);
        run.end();
    }

    @Property
    void keepsItsPromisesWithoutBatching(@ForAll("schedules") List<Event> schedule) {
        Run run = new Run(BatchPlanner.oneByOne(), 0);
        schedule.forEach(run::on);
        run.end();
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
        private final List<RecordingObserver> observers = new ArrayList<>();
        private final List<Cancellation> calls = new ArrayList<>();
        private final List<Long> arrivals = new ArrayList<>();
        private final List<Integer> widths = new ArrayList<>();
        private final List<Integer> executed = new ArrayList<>();
        private final List<DeferredExecution> deferred = new ArrayList<>();
        private Backend backend = Backend.ANSWER;

        Run(BatchPlanner planner, long delay) {
            this.delay = delay;
            this.scheduler = new SteppedScheduler(model, planner, memory, instances.get(0), instances.get(1));
        }

        void on(Event event) {
            switch (event) {
                case Event.Submit(int items, int width, boolean impatient) -> submit(items, width, impatient);
                case Event.Withdraw(int index) -> withdraw(index);
                case Event.Step(int worker, Backend what) -> step(worker, what);
                case Event.Pass(int nanos) -> scheduler.clock.advanceNanos(nanos);
                case Event.Finish(int index) -> finish(index);
            }
        }

        private void submit(int items, int width, boolean impatient) {
            RecordingObserver observer = new RecordingObserver();
            Calls call = Calls.to(model, memory)
                    .id(String.valueOf(calls.size()))
                    .floats("IN", Shape.of(items, width), calls.size());
            long now = scheduler.clock.getAsLong();
            if (impatient) {
                call.deadline(now + PATIENCE);
            }
            observers.add(observer);
            arrivals.add(now);
            widths.add(width);
            calls.add(scheduler.submit(call.of(items), observer));
        }

        private void withdraw(int index) {
            if (!calls.isEmpty()) {
                int which = index % calls.size();
                calls.get(which).cancel();
                boolean known = executed.contains(which);
                assertThat(known || observers.get(which).hasEnded())
                        .as("answered at once")
                        .isTrue();
            }
        }

        private void step(int worker, Backend what) {
            backend = what;
            boolean worked = scheduler.workers.get(worker).step();
            if (!worked) {
                for (int i = 0; i < calls.size(); i++) {
                    boolean waits = !executed.contains(i) && !observers.get(i).hasEnded();
                    long age = scheduler.clock.getAsLong() - arrivals.get(i);
                    assertThat(waits && age >= delay)
                            .as("request %s waits too long", i)
                            .isFalse();
                }
            }
        }

        private void finish(int index) {
            if (!deferred.isEmpty()) {
                deferred.remove(index % deferred.size()).finish();
            }
        }

        private void execute(Batch batch) throws BackendException {
            int last = executed.isEmpty() ? -1 : executed.getLast();
            for (var request : batch.requests()) {
                int id = Integer.parseInt(request.id());
                assertThat(id).as("first come, first served").isGreaterThan(last);
                assertThat(observers.get(id).hasEnded())
                        .as("executed after its answer")
                        .isFalse();
                assertThat(widths.get(id))
                        .isEqualTo(widths.get(
                                Integer.parseInt(batch.requests().getFirst().id())));
                executed.add(id);
                last = id;
            }
            assertThat(batch.size()).isLessThanOrEqualTo(MAX_BATCH);
            switch (backend) {
                case ANSWER -> FakeInstance.copy(batch);
                case ALIAS -> batch.scatter("OUT", batch.gather("IN"), () -> {});
                case REFUSE -> throw new BackendException(ErrorCode.UNAVAILABLE, "refused");
                case CRASH -> throw new IllegalStateException("crashed");
                case FAIL_FIRST -> {
                    FakeInstance.copy(batch);
                    batch.requests().getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "failed"));
                }
                case DEFER -> {
                    deferred.add(batch.defer());
                    FakeInstance.copy(batch);
                }
            }
        }

        /** Stops, executes the rest, and checks that everybody was answered and everything given back. */
        void end() {
            scheduler.queue.stop();
            scheduler.drain();
            deferred.forEach(DeferredExecution::finish);
            for (int i = 0; i < observers.size(); i++) {
                observers.get(i).check();
                assertThat(observers.get(i).hasEnded())
                        .as("request %s answered", i)
                        .isTrue();
                checkContent(i);
                observers.get(i).close();
            }
            instances.forEach(instance -> assertThat(instance.mistakes()).isEmpty());
            assertThat(executed).doesNotHaveDuplicates();
            assertThat(scheduler.inFlight()).isZero();
            memory.close();
        }

        private void checkContent(int index) {
            if (!observers.get(index).responses().isEmpty()) {
                float[] content = observers.get(index).floats("OUT");
                for (int i = 0; i < content.length; i++) {
                    assertThat(content[i]).isEqualTo(index + i);
                }
            }
        }
    }
}
