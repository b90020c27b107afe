package dev.nereid.scheduler.instance;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SteppedScheduler;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that the stack of a report is one of the execution that the report names. */
@Timeout(60)
final class ExecutionWatchTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final StackTraceElement[] STACK = {new StackTraceElement("a.B", "execute", "B.java", 1)};

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<CountDownLatch> entered = List.of(new CountDownLatch(1), new CountDownLatch(1));
    private final List<CountDownLatch> open = List.of(new CountDownLatch(1), new CountDownLatch(1));
    private final List<RecordingObserver> observers = new ArrayList<>();
    private final FakeInstance instance = new FakeInstance(batch -> {
        int index = Integer.parseInt(batch.requests().getFirst().id());
        entered.get(index).countDown();
        Latches.await(open.get(index));
        FakeInstance.copy(batch);
    });
    private final SteppedScheduler scheduler = new SteppedScheduler(
            model, BatchPlanner.oneByOne(), BatchingPolicy.NONE, memory, ExecutionTraits.DEFAULT, instance);
    private Runnable duringRead = () -> {};
    private final ExecutionWatch watch = new ExecutionWatch(
            scheduler.model,
            () -> scheduler.workers,
            (BackendCallbacks) Runnable::run,
            thread -> {
                duringRead.run();
                return STACK;
            },
            LIMIT,
            LIMIT);

    @Test
    void reportsAnExecutionThatGoesOn() throws InterruptedException {
        Thread thread = execute();
        scheduler.clock.advanceNanos(LIMIT.toNanos());

        watch.check(scheduler.clock.getAsLong());
        watch.check(scheduler.clock.getAsLong());

        assertThat(watch.total()).isEqualTo(1);
        assertThat(instance.overdue()).as("reports to the backend").isEqualTo(1);
        assertThat(scheduler.workers.getFirst().isExecutionOverdue()).isTrue();
        end(thread);
    }

    /** The thread executes the next batch by the time that its stack is read. */
    @Test
    void dropsAStackThatMayBeOfTheNextExecution() throws InterruptedException {
        Thread thread = execute();
        scheduler.clock.advanceNanos(LIMIT.toNanos());
        duringRead = () -> {
            open.getFirst().countDown();
            Latches.await(entered.getLast());
        };

        watch.check(scheduler.clock.getAsLong());

        assertThat(watch.total()).isZero();
        assertThat(scheduler.workers.getFirst().isExecutionOverdue()).isFalse();
        end(thread);
    }

    /** The backend has returned by the time that the stack is read: the thread runs code of an observer. */
    @Test
    void dropsAStackThatMayBeOfAnObserver() throws InterruptedException {
        CountDownLatch delivering = new CountDownLatch(1);
        CountDownLatch delivered = new CountDownLatch(1);
        observers.add(new RecordingObserver().beforeResponse(() -> {
            delivering.countDown();
            Latches.await(delivered);
        }));
        Thread thread = execute();
        scheduler.clock.advanceNanos(LIMIT.toNanos());
        duringRead = () -> {
            open.getFirst().countDown();
            Latches.await(delivering);
        };

        watch.check(scheduler.clock.getAsLong());
        assertThat(watch.total()).isZero();

        watch.check(scheduler.clock.getAsLong());
        assertThat(watch.total()).as("as one that delivers its responses").isEqualTo(1);
        assertThat(instance.overdue())
                .as("reports to the backend, which has returned")
                .isZero();
        delivered.countDown();
        end(thread);
    }

    /** Starts a thread that executes two batches, and waits until it executes the first one. */
    private Thread execute() {
        for (int i = observers.size(); i < 2; i++) {
            observers.add(new RecordingObserver());
        }
        for (int i = 0; i < 2; i++) {
            scheduler.submit(request(String.valueOf(i)), observers.get(i));
        }
        Thread thread = Thread.ofPlatform().start(() -> {
            scheduler.step();
            scheduler.step();
        });
        Latches.await(entered.getFirst());
        return thread;
    }

    private void end(Thread thread) throws InterruptedException {
        open.forEach(CountDownLatch::countDown);
        thread.join();
        observers.forEach(observer -> observer.await().close());
        scheduler.drain();
    }

    private CheckedRequest request(String id) {
        return Requests.to(model, memory).id(id).floats("IN", Shape.of(1, 2), 1).of(1);
    }
}
