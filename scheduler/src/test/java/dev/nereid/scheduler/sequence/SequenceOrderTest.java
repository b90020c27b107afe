package dev.nereid.scheduler.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.SteppedSequences;
import dev.nereid.scheduler.Threads;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.time.TimeoutQueue;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.FakeClock;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The order of the responses of sequences on several instances. */
@Timeout(60)
final class SequenceOrderTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeClock clock = new FakeClock();
    private final ModelSettings settings = SteppedSequences.settings(4);
    private final List<DeferredExecution> executions = new CopyOnWriteArrayList<>();

    @Test
    void responsesKeepTheOrderInWhichRequestsWereTakenOverAllInstances() {
        try (ModelScheduler scheduler = start(true)) {
            RecordingObserver first = send(scheduler, 1);
            RecordingObserver second = send(scheduler, 2);

            executions.get(1).complete();
            assertThat(second.isSilent()).isTrue();

            executions.get(0).complete();
            first.await().close();
            second.await().close();
        }
    }

    @Test
    void responsesAreSentAsTheyComeOtherwise() {
        try (ModelScheduler scheduler = start(false)) {
            RecordingObserver first = send(scheduler, 1);
            RecordingObserver second = send(scheduler, 2);

            executions.get(1).complete();
            second.await().close();
            assertThat(first.isSilent()).isTrue();

            executions.get(0).complete();
            first.await().close();
        }
    }

    /** Sends the only request of a sequence, and waits until an instance has it. Sequences spread over instances. */
    private RecordingObserver send(ModelScheduler scheduler, long id) {
        int before = executions.size();
        RecordingObserver observer = new RecordingObserver();
        scheduler.submit(
                Requests.to(settings, memory)
                        .options(SteppedSequences.sequence(id).start().options())
                        .floats("IN", Shape.of(1, 1), 1)
                        .of(1),
                observer);
        Threads.await("an execution", () -> executions.size() > before);
        return observer;
    }

    private ModelScheduler start(boolean ordered) {
        SequencePlan plan = Plans.oldest(1, 0);
        List<Instance> slots = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            slots.add(new Instance("i" + i, Device.CPU, new FakeInstance(batch -> {
                FakeInstance.copy(batch);
                executions.add(batch.defer());
            })));
        }
        return ModelScheduler.start(
                new ModelPlan(settings, BatchingPolicy.NONE)
                        .withSequences(Optional.of(ordered ? Plans.ordered(plan) : plan)),
                slots,
                new SchedulerEnvironment(memory, clock, new TimeoutQueue(() -> {})));
    }
}
