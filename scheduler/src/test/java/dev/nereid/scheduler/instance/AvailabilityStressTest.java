package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.TriedScheduler;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** No wake-up is lost: requests complete once an instance is available, whatever happened before. */
@Timeout(120)
@Tag("slow")
final class AvailabilityStressTest {
    private static final int ROUNDS = 500;
    private static final int REQUESTS = 4;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<FakeInstance> instances =
            List.of(new FakeInstance(FakeInstance::copy), new FakeInstance(FakeInstance::copy));

    @ParameterizedTest
    @CsvSource({"false, 0", "true, 0", "false, 20000", "true, 20000"})
    void waitingRequestsGoOnWhenAnInstanceIsAvailable(boolean isShort, long delayNanos) throws InterruptedException {
        BatchingPolicy policy = new BatchingPolicy(true, List.of(4), delayNanos, false, PriorityPolicy.NONE);
        Random random = new Random(delayNanos);
        try (ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, policy).with(new ExecutionTraits("b", false, isShort)),
                List.of(
                        SteppedScheduler.slot("i0", instances.get(0), RateProfile.NONE),
                        SteppedScheduler.slot("i1", instances.get(1), RateProfile.NONE)),
                new SchedulerEnvironment(memory, System::nanoTime, timer))) {
            for (int round = 0; round < ROUNDS; round++) {
                CountDownLatch begun = new CountDownLatch(1);
                long seed = random.nextLong();
                Thread toggling = Thread.startVirtualThread(() -> toggle(new Random(seed), begun));
                begun.await();
                List<RecordingObserver> observers = new ArrayList<>();
                for (int i = 0; i < REQUESTS; i++) {
                    observers.add(new RecordingObserver());
                    scheduler.submit(
                            Requests.to(model, memory)
                                    .floats("IN", Shape.of(1, 2), 1)
                                    .of(1),
                            observers.get(i));
                }
                toggling.join();
                for (RecordingObserver observer : observers) {
                    assertThat(observer.await().responses()).hasSize(1);
                    observer.close();
                }
            }
        }
        instances.forEach(instance -> assertThat(instance.violations()).isEmpty());
    }

    /** Changes both instances a few times; one of them is available in the end. */
    private void toggle(Random random, CountDownLatch begun) {
        int last = random.nextInt(instances.size());
        instances.get(random.nextInt(instances.size())).availability.unavailable("for a test");
        begun.countDown();
        for (int i = random.nextInt(6); i > 0; i--) {
            InstanceAvailability one = instances.get(random.nextInt(instances.size())).availability;
            if (random.nextBoolean()) {
                one.available();
            } else {
                one.unavailable("for a test");
            }
            for (int spins = random.nextInt(2_000); spins > 0; spins--) {
                Thread.onSpinWait();
            }
        }
        instances.get(1 - last).availability.unavailable("for a test");
        instances.get(last).availability.available();
    }
}
