package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.queue.PriorityPolicy;
import dev.nereid.scheduler.queue.QueuePolicy;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests many concurrent threads with all kinds of failures. The scheduler is closed while requests still arrive. */
@Timeout(120)
@Tag("slow")
final class ModelSchedulerStressTest {
    private static final int SUBMITTERS = 8;
    private static final int REQUESTS = 2_000;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    /** Most requests have no timeout; some expire soon, or are delayed then. */
    private static final PriorityPolicy PRIORITIES = new PriorityPolicy(
            4,
            4,
            QueuePolicy.NONE,
            Map.of(
                    1L, new QueuePolicy(QueuePolicy.TimeoutAction.REJECT, 500_000, false, 50),
                    2L, new QueuePolicy(QueuePolicy.TimeoutAction.DELAY, 100_000, false, 0)));

    @AutoClose
    private final TimerThread timer = new TimerThread(System::nanoTime);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(16)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();
    private final List<Tally> tallies = new ArrayList<>();

    @ParameterizedTest
    @CsvSource({
        "false, 0, false, false",
        "true, 0, false, false",
        "true, 200000, false, false",
        "true, 0, false, true",
        "false, 0, true, false",
        "true, 0, true, false",
        "true, 200000, true, false",
        "true, 200000, true, true"
    })
    void completesEveryRequestOnceAndReleasesAllMemory(
            boolean dynamic, long delayNanos, boolean shortExecutions, boolean ordered) throws Exception {
        FakeInstance one = new FakeInstance(new Moody(1)::execute);
        FakeInstance two = new FakeInstance(new Moody(2)::execute);
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(dynamic, List.of(4, 8), delayNanos, ordered, PRIORITIES))
                        .with(new ExecutionTraits("moody", false, shortExecutions)),
                List.of(new Instance("one", Device.CPU, one), new Instance("two", Device.CPU, two)),
                new SchedulerEnvironment(memory, System::nanoTime, timer));
        List<Thread> submitters = new ArrayList<>();
        CountDownLatch nearlyDone = new CountDownLatch(SUBMITTERS);
        for (int i = 0; i < SUBMITTERS; i++) {
            Tally tally = new Tally();
            tallies.add(tally);
            int seed = i;
            submitters.add(Thread.ofPlatform().start(() -> submit(scheduler, tally, seed, nearlyDone)));
        }

        nearlyDone.await();
        scheduler.close();
        for (Thread submitter : submitters) {
            submitter.join();
        }

        Tally all = new Tally();
        tallies.forEach(all::add);
        assertThat(all.completions.sum()).isEqualTo(SUBMITTERS * REQUESTS);
        assertThat(all.wrong).hasValue(0);
        assertThat(all.responses.sum()).isGreaterThan(SUBMITTERS * REQUESTS / 4);
        assertThat(all.errors.get(ErrorCode.CANCELLED).sum()).isPositive();
        assertThat(all.errors.get(ErrorCode.NOT_FOUND).sum()).isPositive();
        assertThat(scheduler.inFlight()).isZero();
        assertThat(one.violations()).isEmpty();
        assertThat(two.violations()).isEmpty();
        assertThat(one.isClosed() && two.isClosed()).isTrue();
        assertThat(one.batches().size() + two.batches().size()).isPositive();
    }

    /** Submits requests in bursts and cancels some; the last tenth arrives while the scheduler closes. */
    private void submit(ModelScheduler scheduler, Tally tally, int seed, CountDownLatch nearlyDone) {
        Random random = new Random(seed);
        for (int i = 0; i < REQUESTS; i++) {
            if (i == REQUESTS * 9 / 10) {
                nearlyDone.countDown();
            }
            long deadline = System.nanoTime() + random.nextInt(5_000_000);
            int items = 1 + random.nextInt(3);
            float first = random.nextInt(1_000);
            Requests builder = Requests.to(model, memory)
                    .priority(random.nextInt(8))
                    .floats("IN", Shape.of(items, random.nextInt(10) == 0 ? 3 : 2), first);
            if (random.nextInt(16) == 0) {
                builder.deadline(deadline);
            }
            Once observer = new Once(tally, first, random.nextInt(50) == 0);
            Cancellation cancellation = scheduler.submit(builder.of(items), observer);
            if (random.nextInt(8) == 0) {
                cancellation.cancel();
            } else if (random.nextInt(16) == 0) {
                observer.await();
                cancellation.cancel();
            }
        }
    }

    /** A backend of which a share of executions fails. Confined to the thread of its instance. */
    private static final class Moody {
        private final Random random;

        Moody(int seed) {
            random = new Random(seed);
        }

        void execute(Batch batch) {
            switch (random.nextInt(12)) {
                case 0 -> throw new BackendException(ErrorCode.NOT_FOUND, "moody");
                case 1 -> throw new IllegalStateException("moody");
                case 2 -> batch.put("OUT", batch.gather("IN"));
                case 3 -> {
                    FakeInstance.copy(batch);
                    DeferredExecution rest = batch.defer();
                    Thread.startVirtualThread(rest::complete);
                }
                case 4 -> {
                    for (InferenceRequest request : batch.requests()) {
                        request.response().put("OUT", request.input("IN").orElseThrow());
                    }
                }
                case 5 -> {
                    AtomicInteger actions = new AtomicInteger();
                    for (InferenceRequest request : batch.requests()) {
                        request.onCancel(actions::incrementAndGet).close();
                        request.onCancel(actions::incrementAndGet);
                    }
                    FakeInstance.copy(batch);
                }
                default -> FakeInstance.copy(batch);
            }
        }
    }

    /** The outcomes of one submitter. Safe for use by any thread. */
    private static final class Tally {
        private final LongAdder completions = new LongAdder();
        private final LongAdder responses = new LongAdder();
        private final Map<ErrorCode, LongAdder> errors = new EnumMap<>(ErrorCode.class);
        private final AtomicInteger wrong = new AtomicInteger();

        Tally() {
            for (ErrorCode code : ErrorCode.values()) {
                errors.put(code, new LongAdder());
            }
        }

        void add(Tally other) {
            completions.add(other.completions.sum());
            responses.add(other.responses.sum());
            other.errors.forEach((code, count) -> errors.get(code).add(count.sum()));
            wrong.addAndGet(other.wrong.get());
        }
    }

    /** Counts the events of one request and checks their content. It throws now and then, which must have no effect. */
    private static final class Once implements ResponseObserver {
        private final Tally tally;
        private final float first;
        private final boolean throwing;
        private final CountDownLatch completed = new CountDownLatch(1);

        Once(Tally tally, float first, boolean throwing) {
            this.tally = tally;
            this.first = first;
            this.throwing = throwing;
        }

        @Override
        public void onResponse(InferResponse response) {
            float got = response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
            if (got != first) {
                tally.wrong.incrementAndGet();
            }
            tally.responses.increment();
            response.close();
            end();
        }

        @Override
        public void onCompleted() {
            tally.wrong.incrementAndGet();
            end();
        }

        @Override
        public void onError(InferenceException error) {
            tally.errors.get(error.code()).increment();
            end();
        }

        private void end() {
            if (completed.getCount() == 0) {
                tally.wrong.incrementAndGet();
            }
            tally.completions.increment();
            completed.countDown();
            if (throwing) {
                throw new IllegalStateException("an observer that throws");
            }
        }

        void await() {
            try {
                if (!completed.await(30, TimeUnit.SECONDS)) {
                    tally.wrong.incrementAndGet();
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }
}
