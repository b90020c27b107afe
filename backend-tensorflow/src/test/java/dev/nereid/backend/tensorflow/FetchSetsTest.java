package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** More sets of outputs than a session is run with. */
class FetchSetsTest {
    private static final int THREADS = 4;
    private static final int OUTPUTS = 6;
    private static final int SETS = (1 << OUTPUTS) - 1;

    @TempDir
    private Path directory;

    /** The outputs whose bits are 1 in a number. */
    private static List<String> outputs(int set) {
        return IntStream.range(0, OUTPUTS)
                .filter(i -> (set >> i & 1) == 1)
                .mapToObj(i -> "y" + i)
                .toList();
    }

    @Test
    void acceptsSixteenSetsAndThoseAgain() {
        FetchSets sets = new FetchSets();

        Set<Integer> first = accepted(sets, all());

        assertThat(first).hasSize(16);
        assertThat(accepted(sets, all())).isEqualTo(first);
    }

    private static List<Integer> all() {
        return IntStream.rangeClosed(1, SETS).boxed().toList();
    }

    private static Set<Integer> accepted(FetchSets sets, List<Integer> asked) {
        Set<Integer> accepted = new HashSet<>();
        for (int set : asked) {
            if (sets.accepts(new HashSet<>(outputs(set)))) {
                accepted.add(set);
            }
        }
        return accepted;
    }

    @Test
    void neverAcceptsMoreWhateverThreadsDo() throws InterruptedException, ExecutionException {
        List<List<Integer>> orders = IntStream.range(0, THREADS)
                .mapToObj(thread -> {
                    List<Integer> order = new ArrayList<>(all());
                    Collections.shuffle(order, new Random(thread));
                    return order;
                })
                .toList();
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            for (int round = 0; round < 2_000; round++) {
                FetchSets sets = new FetchSets();
                CyclicBarrier start = new CyclicBarrier(THREADS);
                Set<Integer> accepted = new HashSet<>();
                for (Set<Integer> ofThread : onAll(threads, thread -> {
                    start.await();
                    return accepted(sets, orders.get(thread));
                })) {
                    accepted.addAll(ofThread);
                }
                assertThat(accepted).hasSize(16);
            }
        }
    }

    /** Work of one of several threads. */
    private interface Work<T> {
        T run(int thread) throws Exception;
    }

    private static <T> List<T> onAll(ExecutorService threads, Work<T> work)
            throws InterruptedException, ExecutionException {
        List<Callable<T>> calls = IntStream.range(0, THREADS)
                .mapToObj(thread -> (Callable<T>) () -> work.run(thread))
                .toList();
        List<T> results = new ArrayList<>();
        for (Future<T> result : threads.invokeAll(calls)) {
            results.add(result.get());
        }
        return results;
    }

    /** Each request gets exactly its outputs, also where the session computes all. */
    @Test
    void instancesServeAllSetsAtTheSameTime() throws InterruptedException, ExecutionException {
        ModelSettingsBuilder settings =
                ModelSettings.builder("m", 1).input(spec("x")).output(spec("y0"));
        GraphFiles graph = new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, 2)
                .operation("y0", "Neg", org.tensorflow.proto.DataType.DT_FLOAT, "x");
        for (int i = 1; i < OUTPUTS; i++) { // -1, -2, -4, …
            String before = "y" + (i - 1);
            graph.operation("y" + i, "AddV2", org.tensorflow.proto.DataType.DT_FLOAT, before, before);
            settings.output(spec("y" + i));
        }
        graph.write(directory.resolve("model.graphdef"));
        try (TestBackend test = new TestBackend(directory);
                ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            Model model = test.load(settings, THREADS);
            List<ModelInstance> instances = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                instances.add(test.instance(model));
            }
            List<Integer> served = onAll(threads, thread -> serveAll(test, instances.get(thread), settings.build()));

            assertThat(served).containsOnly(SETS).hasSize(THREADS);
        }
    }

    private static TensorSpec spec(String name) {
        return TensorSpec.of(name, DataType.FP32, Shape.of(2));
    }

    private static int serveAll(TestBackend test, ModelInstance instance, ModelSettings settings) {
        Tensor x = test.floats(Shape.of(2), -1, -3);
        for (int set = 1; set <= SETS; set++) {
            List<String> requested = outputs(set);
            FakeRequest request = new FakeRequest(1, requested).with("x", x);
            try (FakeBatch batch = new FakeBatch(settings, test.memory, request)) {
                instance.execute(batch);
                assertThat(batch.outputs()).containsOnlyKeys(requested);
                for (String name : requested) {
                    int factor = 1 << Integer.parseInt(name.substring(1));
                    assertThat(TestBackend.floats(batch.outputs().get(name))).containsExactly(factor, 3 * factor);
                }
            }
        }
        return SETS;
    }
}
