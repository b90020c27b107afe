package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Random schedules of first requests and the close of a model, whose instances have no threads yet. */
@Timeout(120)
@Tag("slow")
final class LateStartStressTest {
    private static final int ROUNDS = 600;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("late", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @ParameterizedTest
    @CsvSource({"false, false", "true, false", "false, true", "true, true"})
    void completesEachRequestAndEndsEachThread(boolean shortExecutions, boolean areThreadsEnding) throws Exception {
        try (RestingThreads resting = new RestingThreads()) {
            SchedulerEnvironment plain = new SchedulerEnvironment(memory, System::nanoTime, timer);
            run(shortExecutions, areThreadsEnding ? plain.with(resting.supervision()) : plain);
        }
    }

    private void run(boolean shortExecutions, SchedulerEnvironment environment) throws Exception {
        Random random = new Random(11);
        for (int round = 0; round < ROUNDS; round++) {
            List<FakeInstance> instances =
                    List.of(new FakeInstance(FakeInstance::copy), new FakeInstance(FakeInstance::copy));
            ModelScheduler scheduler = start(instances, shortExecutions, environment);
            List<RecordingObserver> observers = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            CyclicBarrier together = new CyclicBarrier(3);
            for (int client = 0; client < 2; client++) {
                RecordingObserver observer = new RecordingObserver();
                observers.add(observer);
                threads.add(run(together, random.nextInt(2_000), () -> {
                    scheduler.submit(request(), observer);
                    observer.await().close();
                }));
            }
            threads.add(run(together, random.nextInt(4_000), scheduler::close));
            for (Thread thread : threads) {
                thread.join();
            }

            assertThat(observers).allMatch(LateStartStressTest::isAnsweredOrRefused);
            assertThat(instances).allMatch(FakeInstance::isClosed);
            assertThat(instances).flatExtracting(FakeInstance::violations).isEmpty();
            assertThat(scheduler.inFlight()).isZero();
        }
        Threads.await(
                "ended",
                () -> Thread.getAllStackTraces().keySet().stream()
                        .noneMatch(thread -> thread.getName().startsWith("instance/late/")));
    }

    private static boolean isAnsweredOrRefused(RecordingObserver observer) {
        return observer.responses().size() == 1 || observer.error().code() == ErrorCode.UNAVAILABLE;
    }

    /** Runs an action after all others are there, and a random time. */
    private static Thread run(CyclicBarrier together, int spins, Runnable action) {
        return Thread.ofPlatform().start(() -> {
            try {
                together.await();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            for (int i = 0; i < spins; i++) {
                Thread.onSpinWait();
            }
            action.run();
        });
    }

    private ModelScheduler start(
            List<FakeInstance> instances, boolean shortExecutions, SchedulerEnvironment environment) {
        List<Instance> slots = new ArrayList<>();
        for (FakeInstance instance : instances) {
            slots.add(new Instance("i" + slots.size(), Device.CPU, instance));
        }
        return TriedScheduler.start(
                new ModelPlan(model, BatchingPolicy.NONE).with(new ExecutionTraits("copy", false, shortExecutions)),
                slots,
                environment);
    }

    private CheckedRequest request() {
        return Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1);
    }
}
