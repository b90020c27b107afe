package dev.nereid.scheduler.sequence;

import static dev.nereid.scheduler.SteppedSequences.sequence;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.SteppedSequences.Position;
import dev.nereid.scheduler.SteppedSequences.Sent;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
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
 * A random schedule of up to 50 sequences on three instances, with cancellations, timeouts, idle gaps, failures, and
 * instances that retire or fail. Each answer is compared with a sequential sum. Confined.
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
        private final Set<Integer> failed = new HashSet<>();
        private int executed;
        private int row = -1;
        private int instance = -1;

        Run(long id) {
            this.id = id;
        }
    }

    private final Random random;
    private final boolean direct;
    private final SteppedSequences scheduler;
    private final List<Run> runs = new ArrayList<>();
    private final Map<Long, Run> current = new HashMap<>();
    private final Set<Integer> gone = new HashSet<>();

    SequenceSchedules(long seed, boolean direct) {
        this.random = new Random(seed);
        this.direct = direct;
        Tensor zero = Tensor.of(
                DataType.FP32,
                Shape.of(1, 1),
                Arena.ofAuto().allocate(Float.BYTES, 64).asReadOnly());
        SequencePlan plan = Plans.with(
                direct ? Plans.direct(SLOTS, 100, 0.5f) : Plans.oldest(SLOTS, 100, 2), new InitialState(SUM, zero));
        scheduler = new SteppedSequences(SteppedSequences.settings(SLOTS), plan);
        for (int i = 0; i < INSTANCES; i++) {
            int instance = i;
            scheduler.add(batch -> execute(instance, batch));
        }
    }

    private void execute(int instance, Batch batch) throws BackendException {
        Set<Run> seen = new HashSet<>();
        Tensor start = batch.gather("START");
        Tensor ready = batch.gather("READY");
        Tensor present = batch.gather("SUM_IN");
        Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            InferenceRequest request = batch.requests().get(row);
            check(ready.data().getAtIndex(ValueLayout.JAVA_FLOAT, row) == (request.isNullRequest() ? 0 : 1), "READY");
            if (request.isNullRequest()) {
                check(direct, "null request");
                continue;
            }
            int colon = request.id().indexOf(':');
            Run run = runs.get(Integer.parseInt(request.id().substring(0, colon)));
            int index = Integer.parseInt(request.id().substring(colon + 1));
            check(seen.add(run), "two requests of a run in a batch");
            check(run.executed <= index, "order of a run");
            run.executed = index + 1;
            check(run.instance < 0 || run.instance == instance, "the instance of a run changes");
            check(!direct || run.row < 0 || run.row == row, "the row of a run changes");
            run.instance = instance;
            run.row = row;
            check(start.data().getAtIndex(ValueLayout.JAVA_INT, row) == (index == 0 ? 1 : 0), "START");
            float sum = run.values.get(index) + present.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            next.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            if (random.nextInt(20) == 0) {
                run.failed.add(index);
                request.fail(new BackendException(ErrorCode.INTERNAL, "for a test"));
            }
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
            for (int i = 0; i < 200 && (scheduler.queue.waiting() > 0 || i < 2); i++) {
                scheduler.steps();
                scheduler.advance(TimeUnit.MICROSECONDS.toNanos(100));
            }
            scheduler.advance(Plans.IDLE.toNanos());
            scheduler.steps();
            assertThat(scheduler.queue.sequences()).as("sequences").isZero();
            assertThat(scheduler.queue.stateBytes()).as("bytes of states").isZero();
            assertThat(scheduler.queue.waiting()).as("waiting").isZero();
            SequenceUse use = scheduler.queue.sequenceUse().orElseThrow();
            assertThat(use.live() + use.slotsUsed()).as("live, and slots used").isZero();
            scheduler.instances.forEach(
                    instance -> assertThat(instance.violations()).isEmpty());
            runs.forEach(this::checkAnswers);
        }
    }

    private void step() {
        int kind = random.nextInt(100);
        if (kind < 45) {
            submit();
        } else if (kind < 80) {
            int instance = random.nextInt(INSTANCES);
            if (!gone.contains(instance)) {
                scheduler.step(instance);
            }
        } else if (kind < 88) {
            cancel();
        } else if (kind < 96) {
            scheduler.advance(TimeUnit.MICROSECONDS.toNanos(random.nextInt(200)));
        } else if (kind < 98) {
            scheduler.advance(Plans.IDLE.toNanos() / (1 + random.nextInt(3)));
        } else if (gone.size() < INSTANCES - 1 && random.nextInt(4) == 0) {
            int instance = random.nextInt(INSTANCES);
            if (gone.add(instance)) {
                scheduler.lose(instance);
            }
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
        run.sent.add(scheduler.send(position, scheduler.request(value).id(runs.indexOf(run) + ":" + index)));
        if (end) {
            current.remove(run.id);
        } else if (run.sent.getLast().observer().hasEnded()) { // refused: the sequence has ended
            current.remove(run.id);
        }
    }

    private void cancel() {
        if (!runs.isEmpty()) {
            Run run = runs.get(random.nextInt(runs.size()));
            run.sent.get(random.nextInt(run.sent.size())).cancellation().cancel();
        }
    }

    /** Each answer is the sum of the values before it; nothing is answered after a gap. */
    private void checkAnswers(Run run) {
        float sum = 0;
        boolean gap = false;
        for (int i = 0; i < run.values.size(); i++) {
            Sent sent = run.sent.get(i);
            assertThat(sent.observer().hasEnded()).as("answered").isTrue();
            if (run.failed.contains(i)) {
                assertThat(sent.observer().error().code()).isEqualTo(ErrorCode.INTERNAL);
            } else if (sent.observer().responses().isEmpty()) {
                assertThat(sent.observer().error().code())
                        .isIn(ErrorCode.CANCELLED, ErrorCode.UNAVAILABLE, ErrorCode.INVALID_ARGUMENT);
                gap = true;
            } else {
                sum += run.values.get(i);
                assertThat(sent.sum())
                        .as("sum of request %s of a run of %s", i, run.id)
                        .isEqualTo(sum);
                assertThat(gap).as("answered after a gap").isFalse();
            }
        }
    }
}
