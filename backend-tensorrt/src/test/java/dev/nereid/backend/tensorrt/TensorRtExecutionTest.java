package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.tensorrt.TensorRtModel.LoadedEngine;
import dev.nereid.backend.tensorrt.TensorRtOptions.Priority;
import dev.nereid.cuda.GpuContext;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Batches that overlap on a GPU that does its work late: none ends before its outputs are there. */
@Timeout(60)
final class TensorRtExecutionTest {
    private static final Duration SECONDS = Duration.ofSeconds(30);
    private static final MemoryPlace GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final ModelSettings SETTINGS = ModelSettings.builder("m", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
            .build();

    /** A batch under way, and what its output has to be. */
    private record Sent(FakeBatch batch, List<Float> expected) {}

    @ParameterizedTest
    @CsvSource({"false, true", "true, false", "true, true"})
    void noBatchEndsBeforeItsOutputs(boolean graphs, boolean eager) throws Exception {
        for (long seed = 0; seed < 40; seed++) {
            run(new SplittableRandom(seed), graphs, eager);
        }
    }

    private static void run(SplittableRandom random, boolean graphs, boolean eager) throws Exception {
        HostDriver driver = new HostDriver();
        GpuContext gpu = new GpuContext(driver.driver(), 0);
        LeakCheckingMemory memory = new LeakCheckingMemory();
        FakeEngine engine = new FakeEngine(
                driver,
                1,
                input("IN", Shape.of(-1, 1), range(Shape.of(1, 1), Shape.of(8, 1), Shape.of(8, 1))),
                output("OUT", Shape.of(-1, 1)));
        TensorRtOptions options =
                new TensorRtOptions(graphs, Priority.DEFAULT, eager, Map.of(), "", "FP32", 0, Map.of());
        TensorRtModel model = new TensorRtModel(SETTINGS, options, Map.of(0, new LoadedEngine(gpu, engine, 10)));
        Deque<Sent> sent = new ArrayDeque<>();
        try (ModelInstance instance =
                model.newInstance(new FakeInstanceContext("i", new Device(Device.Kind.GPU, 0), List.of(), memory))) {
            driver.beLate();
            for (int i = 0; i < 30; i++) {
                Sent next = batch(random, memory, 100 * i);
                instance.execute(next.batch());
                sent.add(next);
                while (sent.size() > random.nextInt(4)) {
                    finish(sent.remove());
                }
            }
            while (!sent.isEmpty()) {
                finish(sent.remove());
            }
        }
        memory.close();
        assertThat(driver.living()).isZero();
    }

    private static Sent batch(SplittableRandom random, LeakCheckingMemory memory, float first) {
        int items = random.nextInt(1, 9);
        List<Float> numbers = new ArrayList<>();
        FakeRequest[] requests = new FakeRequest[items];
        for (int i = 0; i < items; i++) {
            numbers.add(first + i);
            requests[i] = new FakeRequest(1, List.of("OUT")).with("IN", Tensor.ofFloats(Shape.of(1, 1), first + i));
        }
        return new Sent(new FakeBatch(SETTINGS, memory, requests).withDevice(GPU), numbers);
    }

    private static void finish(Sent sent) throws InterruptedException {
        try (FakeBatch batch = sent.batch()) {
            assertThat(batch.awaitEnd(SECONDS)).isTrue();
            assertThat(batch.outputs().get("OUT").floats()).containsExactly(floats(sent.expected()));
        }
    }

    private static float[] floats(List<Float> numbers) {
        float[] array = new float[numbers.size()];
        for (int i = 0; i < array.length; i++) {
            array[i] = numbers.get(i);
        }
        return array;
    }
}
