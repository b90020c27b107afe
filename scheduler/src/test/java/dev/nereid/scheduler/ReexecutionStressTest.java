package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.Cancellation;
import dev.nereid.scheduler.instance.ExecutionTraits;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Requests that are executed again, on many threads, while all else happens to them. */
@Tag("slow")
@Timeout(300)
final class ReexecutionStressTest {
    private static final int ROUNDS = 10;
    private static final int REQUESTS = 150;

    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final Queue<Runnable> later = new ConcurrentLinkedQueue<>();
    private final AtomicInteger clients = new AtomicInteger();
    private volatile boolean over;

    /** Ends by close alone, by an abandonment, or with an instance that is retired meanwhile. */
    enum End {
        CLOSE,
        ABANDON,
        RETIRE
    }

    @ParameterizedTest
    @CsvSource({
        "false, CLOSE, true",
        "true, CLOSE, false",
        "false, ABANDON, false",
        "true, ABANDON, false",
        "false, RETIRE, false",
        "true, RETIRE, false"
    })
    void completesEachRequestOnce(boolean decoupled, End end, boolean shortExecutions) throws InterruptedException {
        List<Thread> backend = List.of(runLater(), runLater());
        try (TimerThread timer = new TimerThread(System::nanoTime)) {
            for (int round = 0; round < ROUNDS; round++) {
                round(timer, decoupled, end, shortExecutions);
            }
        } finally {
            over = true;
            for (Thread thread : backend) {
                thread.join();
            }
        }
        memory.close();
    }

    /** Ends deferred executions and streams, as threads of a backend do. */
    private Thread runLater() {
        return Thread.ofPlatform().name("later").daemon(true).start(() -> {
            while (!over) {
                Runnable next = later.poll();
                if (next == null) {
                    Thread.onSpinWait();
                } else {
                    next.run();
                }
            }
        });
    }

    private void round(TimerThread timer, boolean decoupled, End end, boolean shortExecutions)
            throws InterruptedException {
        ModelSettings model = ModelSettings.builder("m", 1)
                .maxBatchSize(4)
                .decoupled(decoupled)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        List<FakeInstance> instances = new ArrayList<>();
        List<Instance> slots = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            FakeInstance instance = new FakeInstance(batch -> execute(batch, decoupled));
            instances.add(instance);
            slots.add(new Instance("i" + i, Device.CPU, instance));
        }
        ModelScheduler scheduler = TriedScheduler.start(
                new ModelPlan(model, new BatchingPolicy(true, List.of(), 0))
                        .with(new ExecutionTraits("b", false, shortExecutions).withMaxDeferred(2))
                        .withIterative(true),
                slots,
                new SchedulerEnvironment(memory, System::nanoTime, timer));
        List<RecordingObserver> observers = new ArrayList<>();
        Thread client = Thread.ofPlatform().start(() -> submit(scheduler, model, observers));
        spin();
        if (end == End.RETIRE) {
            scheduler.replace(List.of(), slots.subList(0, 1), List.of());
        } else if (end == End.ABANDON) {
            scheduler.abandon();
        }
        client.join();
        Thread closing = Thread.ofPlatform().start(scheduler::close);
        for (RecordingObserver observer : observers) {
            observer.await().check();
            observer.close();
        }
        assertThat(closing.join(Duration.ofSeconds(30)))
                .as(() -> "closed: in flight " + scheduler.inFlight() + ", waiting " + scheduler.waiting() + ", later "
                        + later.size() + ", threads " + stacks())
                .isTrue();
        assertThat(scheduler.inFlight()).isZero();
        instances.forEach(instance -> assertThat(instance.violations()).isEmpty());
        assertThat(instances).allMatch(FakeInstance::isClosed);
    }

    private static String stacks() {
        StringBuilder text = new StringBuilder();
        Thread.getAllStackTraces().forEach((thread, stack) -> {
            if (thread.getName().startsWith("instance/") || thread.getName().startsWith("later")) {
                text.append('\n').append(thread).append(Arrays.toString(stack));
            }
        });
        return text.toString();
    }

    private void submit(ModelScheduler scheduler, ModelSettings model, List<RecordingObserver> observers) {
        for (int i = 0; i < REQUESTS; i++) {
            RecordingObserver observer = new RecordingObserver();
            observers.add(observer);
            Requests request = Requests.to(model, memory)
                    .id(String.valueOf(clients.incrementAndGet()))
                    .floats("IN", Shape.of(1, 2), i);
            if (chance(10)) {
                request.deadline(System.nanoTime() + ThreadLocalRandom.current().nextInt(1_000_000));
            }
            Cancellation cancellation = scheduler.submit(request.of(1), observer);
            if (chance(5)) {
                later.add(cancellation::cancel);
            }
        }
    }

    private void execute(Batch batch, boolean decoupled) {
        boolean fails = chance(20);
        DeferredExecution handle = chance(3) ? batch.defer() : null;
        for (InferenceRequest request : batch.requests()) {
            if (decoupled) {
                stream(request);
            } else {
                answer(request);
            }
            if (chance(12)) {
                later.add(() -> request.fail(new BackendException(ErrorCode.INTERNAL, "by the request")));
            }
            if (chance(6)) {
                request.onCancel(ReexecutionStressTest::spin);
            }
        }
        BackendException error = new BackendException(ErrorCode.INTERNAL, "failed");
        if (handle != null) {
            later.add(() -> {
                if (fails) {
                    handle.fail(error);
                } else {
                    handle.complete();
                }
            });
        }
        if (fails && (handle == null || chance(2))) {
            throw error;
        }
    }

    private static void answer(InferenceRequest request) {
        request.response().allocate("OUT", DataType.FP32, Shape.of(1, 2));
        if (chance(2)) {
            request.reschedule();
        }
    }

    private void stream(InferenceRequest request) {
        switch (ThreadLocalRandom.current().nextInt(5)) {
            case 0 -> {} // ended by its execution
            case 1 -> rescheduleIfOpen(request);
            case 2 -> { // ended by a thread of the backend, perhaps during a later execution
                ResponseSender sender = request.sender();
                later.add(sender::complete);
                if (chance(2)) {
                    rescheduleIfOpen(request);
                }
            }
            case 3 -> {
                send(request.sender());
                rescheduleIfOpen(request);
                // Without an effect if the request is executed again; otherwise it is still the backend's.
                ResponseSender sender = request.sender();
                later.add(() -> sender.fail(new BackendException(ErrorCode.INTERNAL, "by the sender")));
            }
            default -> {
                send(request.sender());
                request.sender().complete();
            }
        }
    }

    /** The sender may be ended by now, by a thread that an earlier execution began. */
    private static void rescheduleIfOpen(InferenceRequest request) {
        try {
            request.reschedule();
        } catch (IllegalStateException e) {
            assertThat(e).hasMessageContaining("the sender is ended");
        }
    }

    private static void send(ResponseSender sender) {
        InferenceResponse response = sender.newResponse();
        response.allocate("OUT", DataType.FP32, Shape.of(1, 2));
        sender.send(response);
    }

    private static boolean chance(int of) {
        return ThreadLocalRandom.current().nextInt(of) == 0;
    }

    private static void spin() {
        for (int i = ThreadLocalRandom.current().nextInt(3_000); i > 0; i--) {
            Thread.onSpinWait();
        }
    }
}
