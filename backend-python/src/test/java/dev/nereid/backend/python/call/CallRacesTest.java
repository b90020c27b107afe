package dev.nereid.backend.python.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;

/** Responses, credit, cancellation, drops and the end of the process at the same time. */
class CallRacesTest {
    private static final int ROUNDS = 3_000;

    private static Map<String, Tensor> output(float value) {
        return Map.of("OUT", Tensor.ofFloats(Shape.of(5), value, value, value, value, value));
    }

    @Test
    void endsEachCallOnceAndLeaksNothing() throws Exception {
        RandomGenerator random = RandomGenerator.of("L64X128MixRandom");
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            for (int round = 0; round < ROUNDS; round++) {
                round(threads, random);
            }
        }
    }

    private static void round(ExecutorService threads, RandomGenerator random) throws Exception {
        int count = random.nextInt(0, 12);
        int window = random.nextInt(0, 6);
        int end = random.nextInt(3);
        boolean drops = random.nextInt(4) == 0;
        boolean cancels = random.nextInt(4) == 0;
        boolean closes = random.nextInt(4) == 0;
        int spin = random.nextInt(200);
        LeakCheckingMemory outputs = new LeakCheckingMemory();
        FakeTensorMemory memory = new FakeTensorMemory();
        SentFrames sent = new SentFrames(memory);
        FakeModelClient models = new FakeModelClient(outputs).withDecoupled("stream");
        ModelCalls calls = new ModelCalls(models, sent, memory, 16, new RecordedLog());
        calls.onCall(
                new CallWriter(1, "stream")
                        .stream(window)
                                .input("IN", Tensor.ofFloats(Shape.of(2), 1, 2))
                                .slot("SLOT", DataType.UINT8, Shape.of(4), FakeTensorMemory.OUTGOING, 0, 4)
                                .slot("TEXTS", DataType.BYTES, Shape.of(0), FakeTensorMemory.OUTGOING, 0, 0)
                                .frame(),
                _ -> null);
        FakeModelRequest request = models.sent().getFirst();

        CyclicBarrier start = new CyclicBarrier(2);
        List<Future<?>> done = new ArrayList<>();
        done.add(threads.submit(task(() -> {
            start.await(60, TimeUnit.SECONDS);
            for (int i = 0; i < count; i++) {
                request.respond(output(i));
            }
            switch (end) {
                case 0 -> request.complete();
                case 1 -> request.respondFinally(output(count));
                default -> request.fail(new BackendException(ErrorCode.INTERNAL, "end"));
            }
            return true;
        })));
        done.add(threads.submit(task(() -> {
            start.await(60, TimeUnit.SECONDS);
            for (int i = 0; i < spin; i++) {
                Thread.onSpinWait();
            }
            for (int i = 0; i < 5; i++) {
                calls.onCredit(1, 1);
                if (cancels && i == 1) {
                    calls.onCancel(1);
                }
                if (drops && i == 2) {
                    calls.onDrop(1);
                }
                if (closes && i == 3) {
                    calls.close();
                }
            }
            return true;
        })));
        for (Future<?> one : done) {
            one.get(60, TimeUnit.SECONDS);
        }
        calls.onCredit(1, 100);

        assertThat(calls.open()).isZero();
        assertThat(request.openResponses()).isZero();
        assertThat(memory.allocated).isEmpty();
        assertThat(memory.held).hasValue(0);
        outputs.close();
        List<SentFrames.Response> frames = sent.responses;
        if (!drops && !closes) {
            assertThat(frames.getLast().isFinal()).isTrue();
        }
        for (int i = 0; i < frames.size(); i++) {
            assertThat(frames.get(i).isFinal())
                    .isEqualTo(i == frames.size() - 1 && frames.get(i).isFinal());
            if (!frames.get(i).outputs().isEmpty()) {
                assertThat(frames.get(i).outputs().get("OUT").floats()[0]).isEqualTo(i);
            }
        }
        if (!drops && !closes && !cancels) {
            assertThat(frames).hasSize(count + 1);
        }
    }

    private static Callable<Boolean> task(Callable<Boolean> task) {
        return task;
    }

    @Test
    void closesWhileCallsAreMade() throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(1)) {
            for (int round = 0; round < 1_000; round++) {
                LeakCheckingMemory outputs = new LeakCheckingMemory();
                FakeTensorMemory memory = new FakeTensorMemory();
                SentFrames sent = new SentFrames(memory);
                FakeModelClient models = new FakeModelClient(outputs, "m");
                ModelCalls calls = new ModelCalls(models, sent, memory, 16, new RecordedLog());
                CyclicBarrier start = new CyclicBarrier(2);
                Future<?> closed = threads.submit(() -> {
                    start.await(60, TimeUnit.SECONDS);
                    calls.close();
                    return true;
                });
                start.await(60, TimeUnit.SECONDS);
                for (int i = 0; i < 5; i++) {
                    calls.onCall(
                            new CallWriter(i, "m")
                                    .slot("SLOT", DataType.UINT8, Shape.of(4), FakeTensorMemory.OUTGOING, 0, 4)
                                    .frame(),
                            _ -> null);
                }
                closed.get(60, TimeUnit.SECONDS);
                assertThat(calls.open()).isZero();
                assertThat(memory.held).hasValue(0);
                assertThat(models.sent()).allMatch(FakeModelRequest::isComplete);
                outputs.close();
            }
        }
    }
}
