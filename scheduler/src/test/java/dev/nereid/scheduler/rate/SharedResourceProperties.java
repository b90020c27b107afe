package dev.nereid.scheduler.rate;

import dev.nereid.scheduler.ExpectedRequest;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SchedulerProperties;
import dev.nereid.scheduler.SharedResources;
import dev.nereid.scheduler.SharedResources.Need;
import dev.nereid.scheduler.SteppedModel;
import dev.nereid.scheduler.SteppedWorker;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.IntRange;

/** Checks every schedule of models that share resources. Their instances are added and removed meanwhile. */
@Tag("slow")
final class SharedResourceProperties {
    private static final long DELAY = 100;

    /** More workers of a model would never meet. */
    private static final int MAX_WORKERS = 3;

    /** One thing that happens; numbers beyond what there is count from the beginning again. */
    sealed interface Event {
        record Submit(int model, int items, int width, ExpectedRequest.Options options) implements Event {}

        record Cancel(int model, int index) implements Event {}

        record Read(int model, int index) implements Event {}

        /** A worker takes a batch, and this happens before its backend is done. */
        record Step(int worker, Backend backend, List<Event> meanwhile) implements Event {}

        record Pass(int nanos, boolean expires) implements Event {}

        record Finish(int index) implements Event {}

        record Add(int model, List<Need> needs) implements Event {}

        record Retire(int worker) implements Event {}

        /** The thread of a worker finds out that it was retired. */
        record Leave(int worker) implements Event {}

        /** Everything happens that can. */
        record Settle() implements Event {}
    }

    /** The behavior of a backend with a batch. */
    enum Backend {
        RESPOND,
        REFUSE,
        CRASH,
        DEFER
    }

    private static Arbitrary<Integer> any() {
        return Arbitraries.integers().between(0, 100);
    }

    private static Arbitrary<Integer> model() {
        return Arbitraries.integers().between(0, 1);
    }

    private static Arbitrary<Event> step(Arbitrary<List<Event>> meanwhile) {
        Arbitrary<Backend> backend = Arbitraries.of(
                Backend.RESPOND, Backend.RESPOND, Backend.DEFER, Backend.DEFER, Backend.REFUSE, Backend.CRASH);
        return Combinators.combine(any(), backend, meanwhile).as(Event.Step::new);
    }

    @Provide
    Arbitrary<List<Need>> needs() {
        return Combinators.combine(
                        Arbitraries.integers().between(0, 2),
                        Arbitraries.integers().between(0, 2),
                        Arbitraries.of(0, 0, 1))
                .as(Need::new)
                .list()
                .ofMinSize(1)
                .ofMaxSize(2);
    }

    @Provide
    Arbitrary<List<Event>> schedules() {
        Arbitrary<ExpectedRequest.Options> options = Combinators.combine(
                        Arbitraries.of(false, false, true),
                        Arbitraries.integers().between(0, 4),
                        Arbitraries.of(0, 0, 1, 2))
                .as(ExpectedRequest.Options::new);
        Arbitrary<Event> submit = Combinators.combine(
                        model(),
                        Arbitraries.integers().between(1, SteppedModel.MAX_BATCH),
                        Arbitraries.of(1, 1, 1, 2),
                        options)
                .as(Event.Submit::new);
        Arbitrary<Event> pass = Combinators.combine(
                        Arbitraries.oneOf(
                                Arbitraries.integers().between(0, 400),
                                Arbitraries.integers().between(900, 1_100)),
                        Arbitraries.of(true, false))
                .as(Event.Pass::new);
        Arbitrary<Event> simple = Arbitraries.frequencyOf(
                Tuple.of(6, submit),
                Tuple.of(1, Combinators.combine(model(), any()).as(Event.Cancel::new)),
                Tuple.of(3, Combinators.combine(model(), any()).as(Event.Read::new)),
                Tuple.of(1, pass),
                Tuple.of(2, any().map(Event.Finish::new)),
                Tuple.of(1, Combinators.combine(model(), needs()).as(Event.Add::new)),
                Tuple.of(1, any().map(Event.Retire::new)),
                Tuple.of(1, any().map(Event.Leave::new)),
                Tuple.of(3, step(Arbitraries.just(List.of()))));
        return Arbitraries.frequencyOf(
                        Tuple.of(12, simple),
                        Tuple.of(4, step(simple.list().ofMaxSize(4))),
                        Tuple.of(1, Arbitraries.just(new Event.Settle())))
                .list()
                .ofMaxSize(60);
    }

    @Provide
    Arbitrary<SteppedModel.Scheduling> schedulings() {
        return Combinators.combine(
                        Arbitraries.integers().between(0, SteppedModel.MAX_BATCH),
                        Arbitraries.of(0L, DELAY),
                        new SchedulerProperties().priorities(),
                        Arbitraries.of(true, false))
                .as((preferred, delay, priorities, ordered) -> preferred == 0
                        ? new SteppedModel.Scheduling(BatchPlanner.oneByOne(), 0, priorities, ordered)
                        : new SteppedModel.Scheduling(
                                new BatchPlanner(SteppedModel.MAX_BATCH, List.of(preferred), delay),
                                delay,
                                priorities,
                                ordered));
    }

    @Property(tries = 400, edgeCases = EdgeCasesMode.NONE)
    void keepsItsPromisesWhileInstancesComeAndGo(
            @ForAll("schedules") List<Event> schedule,
            @ForAll("schedulings") SteppedModel.Scheduling one,
            @ForAll("schedulings") SteppedModel.Scheduling other,
            @ForAll("needs") List<Need> ofOne,
            @ForAll("needs") List<Need> ofOther,
            @ForAll @IntRange(min = 2, max = 3) int max) {
        Run run = new Run(List.of(one, other), SharedResources.of(max));
        run.add(0, ofOne);
        run.add(1, ofOther);
        schedule.forEach(run::on);
        run.end();
    }

    @Property(tries = 200, edgeCases = EdgeCasesMode.NONE)
    void keepsItsPromisesWhileInstancesThatTakeNothingComeAndGo(
            @ForAll("schedules") List<Event> schedule, @ForAll("schedulings") SteppedModel.Scheduling scheduling) {
        Run run = new Run(List.of(scheduling), SharedResources.endless());
        run.add(0, List.of(new Need(0, 0, 0)));
        schedule.forEach(run::on);
        run.end();
    }

    /** A schedule on its way. */
    private static final class Run {
        private final LeakCheckingMemory memory = new LeakCheckingMemory();
        private final List<SteppedModel> models = new ArrayList<>();
        private final SharedResources resources;
        private final List<Unfinished> unfinished = new ArrayList<>();
        private Event.Step now = new Event.Step(0, Backend.RESPOND, List.of());

        /** A deferred execution. */
        private record Unfinished(SteppedWorker worker, Need need, DeferredExecution execution) {}

        Run(List<SteppedModel.Scheduling> schedulings, SharedResources resources) {
            schedulings.forEach(one -> models.add(new SteppedModel("m" + models.size(), memory, one)));
            this.resources = resources;
        }

        private SteppedModel model(int index) {
            return models.get(index % models.size());
        }

        void add(int index, List<Need> needs) {
            SteppedModel model = model(index);
            if (model.serving() < MAX_WORKERS) {
                model.add(resources.limiter(), needs, (worker, need, batch) -> execute(model, worker, need, batch));
            }
        }

        void on(Event event) {
            switch (event) {
                case Event.Submit(int model, int items, int width, ExpectedRequest.Options options) ->
                    model(model).submit(items, width, options);
                case Event.Cancel(int model, int index) -> model(model).cancel(index);
                case Event.Read(int model, int index) -> model(model).read(index);
                case Event.Step step -> step(step);
                case Event.Pass(int nanos, boolean expires) -> models.forEach(model -> model.pass(nanos, expires));
                case Event.Finish(int index) -> finish(index);
                case Event.Add(int model, List<Need> needs) -> add(model, needs);
                case Event.Retire(int index) -> retire(index);
                case Event.Leave(int index) -> leave(index);
                case Event.Settle() -> settle();
            }
            models.forEach(SteppedModel::check);
        }

        private List<SteppedWorker> free() {
            return models.stream()
                    .flatMap(model -> model.workers().stream())
                    .filter(SteppedWorker::isFree)
                    .toList();
        }

        private void step(Event.Step step) {
            List<SteppedWorker> free = free();
            if (!free.isEmpty()) {
                now = step;
                free.get(step.worker() % free.size()).step();
            }
        }

        private void execute(SteppedModel model, SteppedWorker worker, Need need, Batch batch) {
            Event.Step step = now;
            resources.take(need);
            if (step.backend() == Backend.DEFER) {
                unfinished.add(new Unfinished(worker, need, batch.defer()));
                FakeInstance.copy(batch);
                step.meanwhile().forEach(this::on);
                return;
            }
            try {
                step.meanwhile().forEach(this::on);
                respond(step.backend(), model, batch);
            } finally {
                resources.giveBack(need);
                worker.end();
            }
        }

        private static void respond(Backend backend, SteppedModel model, Batch batch) {
            switch (backend) {
                case RESPOND, DEFER -> FakeInstance.copy(batch);
                case REFUSE -> {
                    model.fail(batch);
                    throw new BackendException(ErrorCode.UNAVAILABLE, "refused");
                }
                case CRASH -> {
                    model.fail(batch);
                    throw new IllegalStateException("crashed");
                }
            }
        }

        private void finish(int index) {
            if (!unfinished.isEmpty()) {
                Unfinished ending = unfinished.remove(index % unfinished.size());
                ending.execution().complete();
                resources.giveBack(ending.need());
                ending.worker().end();
            }
        }

        /** Retires a worker unless it is the last one of its model. */
        private void retire(int index) {
            List<SteppedWorker> dispensable = models.stream()
                    .filter(model -> model.serving() > 1)
                    .flatMap(model -> model.workers().stream())
                    .filter(worker -> !worker.isRetired())
                    .toList();
            if (!dispensable.isEmpty()) {
                dispensable.get(index % dispensable.size()).retire();
            }
        }

        private void leave(int index) {
            SteppedModel model = model(index);
            model.workers().stream()
                    .filter(SteppedWorker::isToLeave)
                    .findFirst()
                    .ifPresent(model::leave);
        }

        /** Runs all workers until they can only wait for time. */
        private void settle() {
            for (SteppedModel model : models) {
                model.workers().stream().filter(SteppedWorker::isToLeave).forEach(model::leave);
            }
            while (!unfinished.isEmpty()) {
                finish(0);
            }
            now = new Event.Step(0, Backend.RESPOND, List.of());
            boolean found = true;
            while (found) {
                found = false;
                for (SteppedWorker worker : free()) {
                    found |= worker.step();
                }
            }
            models.forEach(SteppedModel::checkDone);
            resources.checkFree();
        }

        /** Stops, executes the rest, and checks that all requests are completed and all memory is released. */
        void end() {
            models.forEach(SteppedModel::stop);
            settle();
            models.forEach(SteppedModel::end);
            resources.checkFree();
            memory.close();
        }
    }
}
