package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Backend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tests runs, cancellations, releases of outputs and closing, in every order. A native handle used after its release
 * would end the process.
 */
@Timeout(120)
class OnnxLifetimeTest {
    private static final int ROUNDS = 25;
    private static final int INSTANCES = 3;
    private static final int ITEMS = 16;

    private final ModelSettings settings = ModelSettings.builder("m", 1)
            .modelFilename("identity_float.onnx")
            .maxBatchSize(8)
            .input(TensorSpec.of("input", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("output", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .build();

    @Test
    void survivesEveryOrderOfRunsCancellationsReleasesAndClosing() throws Exception {
        Random random = new Random(20_261);
        for (int round = 0; round < ROUNDS; round++) {
            try (LeakCheckingMemory memory = new LeakCheckingMemory();
                    Arena arena = Arena.ofShared();
                    ExecutorService threads = Executors.newCachedThreadPool()) {
                race(memory, arena, threads, random);
            }
        }
    }

    private void race(LeakCheckingMemory memory, Arena arena, ExecutorService threads, Random random) throws Exception {
        Backend backend = new OnnxBackendProvider().create(TestBackend.context(Map.of()));
        Model model = backend.load(TestBackend.model(settings, INSTANCES));
        List<AutoCloseable> closing = new ArrayList<>(List.of(backend, model));
        Queue<FakeRequest> cancellable = new ConcurrentLinkedQueue<>();
        Queue<FakeBatch> unread = new ConcurrentLinkedQueue<>();
        List<Future<Integer>> runs = new ArrayList<>();
        for (int i = 0; i < INSTANCES; i++) {
            ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_" + i));
            closing.add(instance);
            runs.add(threads.submit(() -> runUntilClosed(instance, memory, arena, cancellable, unread)));
        }
        Future<?> cancellations = threads.submit(() -> {
            while (runs.stream().anyMatch(run -> !run.isDone()) || !cancellable.isEmpty()) {
                FakeRequest request = cancellable.poll();
                if (request != null) {
                    request.cancel();
                }
            }
        });
        long pause = random.nextLong(2_000_000);
        Collections.shuffle(closing, random);
        spin(pause);
        for (AutoCloseable one : closing) {
            one.close();
        }
        for (Future<Integer> run : runs) {
            assertThat(run.get()).isNotNegative();
        }
        cancellations.get();
        // Outputs that the server still reads after all else is gone.
        for (FakeBatch batch : unread) {
            check(batch);
            batch.close();
        }
    }

    /** Returns the number of completed batches. */
    private int runUntilClosed(
            ModelInstance instance,
            LeakCheckingMemory memory,
            Arena arena,
            Queue<FakeRequest> cancellable,
            Queue<FakeBatch> unread) {
        for (int run = 0; ; run++) {
            FakeRequest request = new FakeRequest(1, List.of("output")).with("input", input(arena));
            FakeRequest other = new FakeRequest(1, List.of("output")).with("input", input(arena));
            FakeBatch batch = new FakeBatch(settings, memory, request, other);
            if (run % 3 == 0) {
                cancellable.add(request);
                cancellable.add(other);
            }
            try {
                instance.execute(batch);
            } catch (IllegalStateException e) {
                assertThat(e).hasMessage("execution: closed (expected: idle)");
                batch.close();
                return run;
            }
            if (run % 5 == 0) {
                unread.add(batch);
            } else {
                check(batch);
                batch.close();
            }
        }
    }

    private static void check(FakeBatch batch) {
        Tensor output = batch.outputs().get("output");
        if (output != null) { // else cancelled
            assertThat(output.shape()).isEqualTo(Shape.of(2, ITEMS));
            assertThat(output.data().getAtIndex(ValueLayout.JAVA_FLOAT, ITEMS)).isEqualTo(7);
        }
    }

    private static Tensor input(Arena arena) {
        float[] values = new float[ITEMS];
        values[0] = 7;
        return Tensor.of(DataType.FP32, Shape.of(1, ITEMS), arena.allocateFrom(ValueLayout.JAVA_FLOAT, values));
    }

    private static void spin(long nanos) {
        long start = System.nanoTime();
        while (System.nanoTime() - start < nanos) {
            Thread.onSpinWait();
        }
    }
}
