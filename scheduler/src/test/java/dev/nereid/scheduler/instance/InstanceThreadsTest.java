package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.EarlyThreads;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads of instances that cannot all be started. */
@Timeout(60)
final class InstanceThreadsTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void closesAllInstancesIfOneThreadCannotStart() {
        FakeInstance[] instances = new FakeInstance[3];
        for (int i = 0; i < instances.length; i++) {
            instances[i] = new FakeInstance(FakeInstance::copy);
        }
        SteppedScheduler scheduler = new SteppedScheduler(model, BatchPlanner.oneByOne(), memory, instances);
        Warmup warmup = new Warmup(scheduler.scope, EarlyThreads.WARMUP, instances.length);
        InstanceThreads threads = new InstanceThreads("t/", FatalErrorHandler.NONE, Runnable::run, thread -> {
            if (thread.getName().equals("t/i1")) {
                throw new OutOfMemoryError("no thread");
            }
            thread.start();
        });

        assertThatThrownBy(() -> threads.start(scheduler.workers, warmup)).hasMessage("no thread");
        scheduler.queue.stop();
        threads.awaitEnd();
        threads.close();

        assertThat(instances).allMatch(FakeInstance::isClosed);
        assertThat(instances).flatExtracting(FakeInstance::violations).isEmpty();
        assertThat(scheduler.queue.isOpen()).isFalse();
    }

    @Test
    void reportsTheEndOfAThreadByAnError() throws InterruptedException {
        SteppedScheduler scheduler =
                new SteppedScheduler(model, BatchPlanner.oneByOne(), memory, new FakeInstance(FakeInstance::copy));
        List<Thread> started = new CopyOnWriteArrayList<>();
        List<String> ended = new CopyOnWriteArrayList<>();
        FatalErrorHandler handler = new FatalErrorHandler() {
            @Override
            public void onFatalError(OutOfMemoryError error) {}

            @Override
            public void onThreadEnded(String thread) {
                ended.add(thread);
            }
        };
        InstanceThreads threads = new InstanceThreads("t/", handler, Runnable::run, thread -> {
            started.add(thread);
            thread.start();
        });
        threads.start(scheduler.workers, new Warmup(scheduler.scope, EarlyThreads.WARMUP, 1));
        Thread thread = started.getFirst();
        Thread.UncaughtExceptionHandler uncaught = thread.getUncaughtExceptionHandler();
        scheduler.queue.stop();
        threads.awaitEnd();
        threads.close();
        assertThat(thread.isAlive()).isFalse();
        assertThat(ended).as("after the end of the model").isEmpty();

        uncaught.uncaughtException(thread, new OutOfMemoryError("Java heap space"));

        assertThat(ended).containsExactly("t/i0");
    }
}
