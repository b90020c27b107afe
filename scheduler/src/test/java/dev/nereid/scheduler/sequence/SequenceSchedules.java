package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Position;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A random schedule of up to 50 sequences on three instances, with cancellations, timeouts, idle gaps, failures, executions
 * that end later, instances that are lost, retire or take no work for a while, and a stop. Each answer is compared with a
 * sequential sum. Confined.
 *
 * <p>A start is the start of a run; what follows under the same id belongs to it. The id of a request says which.
 */
final class SequenceSchedules {
    private static final int IDS = 50;
    private static final int SLOTS = 4;
    private static final int INSTANCES = 3;
    private static final StateSpec SUM = StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(1));

    /** One run of a sequence, from a start on. */
    private static final class Run {
        private final long id;
        private final List<Integer> values = new ArrayList<>();
        private final List<Sent> sent = new ArrayList<>();
        private final Set<Integer> computed = new HashSet<>();
        private final Set<Integer> failed = new HashSet<>();
        private int executed;
        private boolean executing;
        private int row = -1;
        private int instance = -1;

        Run(long id) {
            this.id = id;
        }
    }

    /** An execution that goes on; its backend reads the inputs and writes the outputs at its end. */
    private record Deferred(int instance, Batch batch, DeferredExecution execution) {}

    private final Random random;
    private final boolean direct;
    private final SteppedSequences scheduler;
    private final List<Run> runs = new ArrayList<>();
    private final Map<Long, Run> current = new HashMap<>();
    private final Set<Integer> gone = new HashSet<>();
    private final Set<Integer> retired = new HashSet<>(); // those that are gone among them
    private final List<Deferred> deferred = new ArrayList<>();
    private final Map<String, Run> owners = new HashMap<>();
    private final Set<Integer> unavailable = new HashSet<>();
    private final List<String> trace = new ArrayList<>();
    private boolean stopped;

    SequenceSchedules(long seed, boolean direct) {
        this(seed, direct, SequenceQueue::new);
    }

    /** Creates a schedule of a queue. */
    SequenceSchedules(long seed, boolean direct, SteppedSequences.Intake newIntake) {
        this.random = new Random(seed);
        this.direct = direct;
        Tensor zero = Tensor.of(
                DataType.FP32,
                Shape.of(1, 1),
                Arena.ofAuto().allocate(Float.BYTES, 64).asReadOnly());
        SequencePlan plan = Plans.with(
                direct ? Plans.direct(SLOTS, 100, 0.5f) : Plans.oldest(SLOTS, 100, 2), new InitialState(SUM, zero));
        scheduler = new SteppedSequences(SteppedSequences.settings(SLOTS), plan, newIntake);
        for (int i = 0; i < INSTANCES; i++) {
            int instance = i;
            scheduler.add(batch -> execute(instance, batch));
        }
    }

    /** Returns what was executed where, and how each request ended, after {@link #run}. */
    List<String> trace() {
        return trace;
    }

    private void execute(int instance, Batch batch) {
        trace.add(instance + " executes "
                + batch.requests().stream().map(InferenceRequest::id).toList());
        check(!unavailable.contains(instance), "executed by an unavailable instance");
        checkRows(instance, batch);
        if (random.nextInt(3) == 0) {
            deferred.add(new Deferred(instance, batch, batch.defer()));
        } else {
            compute(batch);
        }
    }

    private Run run(InferenceRequest request) {
        return runs.get(Integer.parseInt(request.id().substring(0, request.id().indexOf(':'))));
    }

    private static int index(InferenceRequest request) {
        return Integer.parseInt(request.id().substring(request.id().indexOf(':') + 1));
    }

    private void checkRows(int instance, Batch batch) {
        Tensor start = batch.gather("START");
        Tensor ready = batch.gather("READY");
        for (int row = 0; row < batch.size(); row++) {
            InferenceRequest request = batch.requests().get(row);
            check(ready.data().getAtIndex(ValueLayout.JAVA_FLOAT, row) == (request.isNullRequest() ? 0 : 1), "READY");
            if (request.isNullRequest()) {
                check(direct, "null request");
                continue;
            }
            Run run = run(request);
            check(!run.executing, "two requests of a run at a time");
            run.executing = true;
            check(run.executed <= index(request), "order of a run");
            run.executed = index(request) + 1;
            check(run.instance < 0 || run.instance == instance, "the instance of a run changes");
            check(!direct || run.row < 0 || run.row == row, "the row of a run changes");
            if (direct && run.row < 0) {
                owners.put(instance + ":" + row, run);
            }
            check(!direct || run.equals(owners.get(instance + ":" + row)), "the row belongs to another run");
            run.instance = instance;
            run.row = row;
            check(start.data().getAtIndex(ValueLayout.JAVA_INT, row) == (index(request) == 0 ? 1 : 0), "START");
        }
    }

    /** Computes a batch, unless all of its requests are cancelled, as backends do that can stop. */
    private void compute(Batch batch) {
        if (batch.requests().stream().allMatch(request -> request.isNullRequest() || request.isCancelled())) {
            for (InferenceRequest request : batch.requests()) {
                if (!request.isNullRequest()) {
                    run(request).executing = false;
                }
            }
            throw new BackendException(ErrorCode.CANCELLED, "stopped");
        }
        Tensor present = batch.gather("SUM_IN");
        Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            InferenceRequest request = batch.requests().get(row);
            if (request.isNullRequest()) {
                continue;
            }
            Run run = run(request);
            run.executing = false;
            float sum = run.values.get(index(request)) + present.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            next.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            if (random.nextInt(20) == 0) {
                run.failed.add(index(request));
                request.fail(new BackendException(ErrorCode.INTERNAL, "for a test"));
            } else {
                run.computed.add(index(request));
            }
        }
    }

    /** Ends an execution that goes on, at times of an instance that is lost. */
    private void finish(Deferred one) {
        deferred.remove(one);
        if (gone.contains(one.instance())) { // its batch is not used any more
            one.execution().complete();
            return;
        }
        if (random.nextInt(10) > 0) {
            try {
                compute(one.batch());
                one.execution().complete();
            } catch (BackendException e) {
                one.execution().fail(e);
            }
            return;
        }
        for (InferenceRequest request : one.batch().requests()) {
            if (!request.isNullRequest()) {
                run(request).executing = false;
                run(request).failed.add(index(request));
            }
        }
        one.execution().fail(new BackendException(ErrorCode.INTERNAL, "for a test"));
    }

    private void finishAll() {
        while (!deferred.isEmpty()) {
            finish(deferred.getFirst());
            scheduler.steps();
        }
    }

    /** Fails the whole test: assertion errors are collected by the fake instance. */
    private static void check(boolean holds, String rule) {
        assertThat(holds).as(rule).isTrue();
    }

    /** Takes random steps, and then ends everything in order. */
    void run(int steps) {
        try (scheduler) {
            for (int i = 0; i < steps; i++) {
                step();
            }
            for (Run run : List.copyOf(current.values())) {
                send(run, true);
            }
            for (int i = 0; i < INSTANCES; i++) {
                setAvailable(i);
            }
            for (int i = 0; i < 200 && (scheduler.intake.waiting() > 0 || i < 2); i++) {
                scheduler.steps();
                finishAll();
                scheduler.advance(TimeUnit.MICROSECONDS.toNanos(100));
            }
            scheduler.advance(Plans.IDLE.toNanos());
            scheduler.steps();
            SequenceUse use = scheduler.intake.sequenceUse().orElseThrow();
            assertThat(use.live()).as("live").isZero();
            assertThat(use.slotsUsed()).as("used slots").isZero();
            assertThat(use.slots()).as("free slots").isEqualTo(stopped ? 0 : (INSTANCES - retired.size()) * SLOTS);
            assertThat(scheduler.intake.hasSequences()).as("sequences").isFalse();
            assertThat(use.states().bytes()).as("bytes of states").isZero();
            assertThat(scheduler.intake.waiting()).as("waiting").isZero();
            scheduler.instances.forEach(
                    instance -> assertThat(instance.violations()).isEmpty());
            runs.forEach(this::checkAnswers);
            trace.add(use.toString());
        }
    }

    private void step() {
        int kind = random.nextInt(100);
        if (kind < 45) {
            submit();
        } else if (kind < 75) {
            int instance = random.nextInt(INSTANCES);
            if (!gone.contains(instance)) {
                scheduler.step(instance);
            }
        } else if (kind < 82) {
            if (!deferred.isEmpty()) {
                finish(deferred.get(random.nextInt(deferred.size())));
            }
        } else if (kind < 89) {
            cancel();
        } else if (kind < 91) {
            int instance = random.nextInt(INSTANCES);
            if (!unavailable.add(instance)) {
                setAvailable(instance);
            } else {
                scheduler.instances.get(instance).availability.unavailable("for a test");
            }
        } else if (kind < 96) {
            scheduler.advance(TimeUnit.MICROSECONDS.toNanos(random.nextInt(200)));
        } else if (kind < 98) {
            scheduler.advance(Plans.IDLE.toNanos() / (1 + random.nextInt(3)));
        } else {
            rare();
        }
    }

    private void setAvailable(int instance) {
        unavailable.remove(instance);
        scheduler.instances.get(instance).availability.available();
    }

    /** Does what happens a few times in a schedule at most. */
    private void rare() {
        int instance = random.nextInt(INSTANCES);
        int kind = random.nextInt(16);
        boolean mayClose = retired.size() < INSTANCES - 1 || retired.contains(instance);
        if (kind < 4 && mayClose && gone.add(instance)) {
            retired.add(instance);
            scheduler.lose(instance);
        } else if (kind == 4 && mayClose && retired.add(instance)) {
            scheduler.workers.get(instance).retire();
        } else if (kind == 5) { // as after a reload: no sequence starts here any more
            stopped = true;
            scheduler.intake.stop();
        } else if (kind < 12) { // starts again on another generation
            long id = 1L + random.nextInt(IDS);
            scheduler.intake.replaceSequence(new Sequence.Id.Numeric(id));
            assertThat(scheduler.intake.hasSequence(new Sequence.Id.Numeric(id)))
                    .isFalse();
            current.remove(id);
        }
    }

    private void submit() {
        long id = 1L + random.nextInt(IDS);
        Run run = current.get(id);
        if (run == null || random.nextInt(15) == 0) { // also on a live id
            run = new Run(id);
            runs.add(run);
            current.put(id, run);
        }
        send(run, random.nextInt(6) == 0);
    }

    private void send(Run run, boolean end) {
        int index = run.values.size();
        int value = 1 + random.nextInt(9);
        Position position = sequence(run.id);
        position = index == 0 ? position.start() : position;
        position = end ? position.end() : position;
        position = random.nextInt(8) == 0 ? position.timeoutMicros(1 + random.nextInt(300)) : position;
        run.values.add(value);
        Requests request = scheduler.request(value).id(runs.indexOf(run) + ":" + index);
        boolean isCancelled = random.nextInt(30) == 0; // before it is queued
        run.sent.add(isCancelled ? scheduler.sendCancelled(position, request) : scheduler.send(position, request));
        if (end) {
            current.remove(run.id);
        } else if (!isCancelled && run.sent.getLast().observer().hasEnded()) { // refused: the sequence has ended
            current.remove(run.id);
        }
    }

    private void cancel() {
        if (!runs.isEmpty()) {
            Run run = runs.get(random.nextInt(runs.size()));
            run.sent.get(random.nextInt(run.sent.size())).cancellation().cancel();
        }
    }

    /** Each answer is the sum of the values before it; nothing is executed after a gap. */
    private void checkAnswers(Run run) {
        float sum = 0;
        boolean gap = false;
        for (int i = 0; i < run.values.size(); i++) {
            Sent sent = run.sent.get(i);
            assertThat(sent.observer().hasEnded()).as("answered").isTrue();
            trace.add(run.id + ":" + i + " ends "
                    + (sent.observer().responses().isEmpty() ? sent.observer().error() : sent.sum()));
            boolean begun = run.computed.contains(i) || run.failed.contains(i);
            assertThat(begun && gap).as("executed after a gap").isFalse();
            sum += run.computed.contains(i) ? run.values.get(i) : 0;
            if (sent.observer().responses().isEmpty()) {
                assertThat(sent.observer().error().code()).isIn(errors(run, i));
                gap |= !begun;
            } else {
                assertThat(run.computed).contains(i);
                assertThat(sent.sum())
                        .as("sum of request %s of a run of %s", i, run.id)
                        .isEqualTo(sum);
            }
        }
    }

    /** Returns the errors with which a request may end. */
    private static Set<ErrorCode> errors(Run run, int index) {
        if (run.computed.contains(index)) { // cancelled during its execution
            return Set.of(ErrorCode.CANCELLED);
        }
        return run.failed.contains(index)
                ? Set.of(ErrorCode.CANCELLED, ErrorCode.INTERNAL)
                : Set.of(ErrorCode.CANCELLED, ErrorCode.UNAVAILABLE, ErrorCode.INVALID_ARGUMENT);
    }
}
