package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.sequence.InitialState;
import dev.nereid.scheduler.sequence.SequencePlan;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Sequences of many threads on instances with threads of their own. */
@Tag("slow")
final class SequenceStressTest {
    private static final int CLIENTS = 8;
    private static final int SEQUENCES = 40;
    private static final int REQUESTS = 20;
    private static final int INSTANCES = 3;
    private static final int SLOTS = 4;
    private static final StateSpec SUM = StateSpec.of("SUM_IN", "SUM_OUT", DataType.FP32, Shape.of(1));

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final ModelSettings settings = SteppedSequences.settings(SLOTS);

    private static void addUp(Batch batch) {
        Tensor in = batch.gather("IN");
        Tensor present = batch.gather("SUM_IN");
        Tensor next = batch.state("SUM_OUT").allocate(DataType.FP32, Shape.of(batch.size(), 1));
        Tensor out = batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
        for (int row = 0; row < batch.size(); row++) {
            float sum = in.data().getAtIndex(ValueLayout.JAVA_FLOAT, row)
                    + present.data().getAtIndex(ValueLayout.JAVA_FLOAT, row);
            next.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
            out.data().setAtIndex(ValueLayout.JAVA_FLOAT, row, sum);
        }
    }

    private static SequencePlan plan(boolean direct, long delayNanos) {
        Tensor zero = Tensor.of(DataType.FP32, Shape.of(1, 1), Arena.ofAuto().allocate(Float.BYTES, 64));
        SequenceBatching.Strategy strategy =
                direct ? SequenceBatching.Strategy.DIRECT : SequenceBatching.Strategy.OLDEST;
        return new SequencePlan(
                SequenceBatching.of(strategy, Duration.ofMinutes(1)).with(SUM),
                List.of(),
                List.of(new InitialState(SUM, zero)),
                SLOTS,
                delayNanos,
                delayNanos > 0 ? 0.5f : 0,
                List.of(),
                false);
    }

    @ParameterizedTest
    @CsvSource({
        "true, 0, false, false",
        "true, 50000, false, false",
        "true, 0, true, false",
        "true, 0, false, true",
        "true, 50000, true, true",
        "false, 0, false, false",
        "false, 50000, false, false",
        "false, 0, true, false",
        "false, 0, false, true",
        "false, 50000, true, true"
    })
    void eachSequenceIsAnsweredInOrder(
            boolean direct, long delayNanos, boolean shortExecutions, boolean areThreadsEnding) throws Exception {
        List<Instance> instances = new ArrayList<>();
        for (int i = 0; i < INSTANCES; i++) {
            instances.add(
                    SteppedScheduler.slot("i" + i, new FakeInstance(SequenceStressTest::addUp), RateProfile.NONE));
        }
        try (TimerThread timer = new TimerThread(System::nanoTime);
                RestingThreads resting = new RestingThreads();
                ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            ModelScheduler scheduler = TriedScheduler.start(
                    new ModelPlan(settings, BatchingPolicy.NONE)
                            .with(new ExecutionTraits("fake", false, shortExecutions))
                            .withSequences(Optional.of(plan(direct, delayNanos))),
                    instances,
                    areThreadsEnding
                            ? new SchedulerEnvironment(memory, System::nanoTime, timer).with(resting.supervision())
                            : new SchedulerEnvironment(memory, System::nanoTime, timer));
            List<Future<?>> ends = new ArrayList<>();
            for (int i = 0; i < SEQUENCES; i++) {
                long id = 1L + i;
                boolean waits = i % 2 == 0;
                ends.add(clients.submit(() -> runSequence(scheduler, id, waits)));
            }
            for (Future<?> end : ends) {
                end.get();
            }
            assertThat(scheduler.waiting()).isZero();
            scheduler.close();
        }
        memory.close();
    }

    private void runSequence(ModelScheduler scheduler, long id, boolean waits) {
        List<RecordingObserver> observers = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            Sequence position = new Sequence(new Sequence.Id.Numeric(id), i == 0, i == REQUESTS - 1);
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            scheduler.submit(
                    Requests.to(settings, memory)
                            .options(new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(position)))
                            .floats("IN", Shape.of(1, 1), i + 1)
                            .of(1),
                    observer);
            if (waits) {
                observer.await();
            }
        }
        float sum = 0;
        for (int i = 0; i < REQUESTS; i++) {
            sum += i + 1;
            try (RecordingObserver observer = observers.get(i).await()) {
                assertThat(observer.floats("OUT")).containsExactly(sum);
            }
        }
    }
}
