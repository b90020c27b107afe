package dev.nereid.walkthrough;

import static dev.nereid.walkthrough.TestTensors.floats;
import static dev.nereid.walkthrough.TestTensors.ints;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests two backends that pass a tensor in memory of a device before it is computed. */
final class DevicePipelineTest {
    private static final MemoryPlace DEVICE = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final GpuInTests gpu = new GpuInTests();

    private final ModelSettings embed = ModelSettings.builder("embed", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("TOKENS", DataType.INT32, Shape.of(1)))
            .output(TensorSpec.of("VECTOR", DataType.FP32, Shape.of(Embed.WIDTH)))
            .build();
    private final ModelSettings score = ModelSettings.builder("score", 1)
            .maxBatchSize(8)
            .input(TensorSpec.of("VECTOR", DataType.FP32, Shape.of(Embed.WIDTH)))
            .output(TensorSpec.of("SCORE", DataType.FP32, Shape.of(1)))
            .build();

    @Test
    void theSecondStepStartsBeforeTheFirstHasComputed() {
        FakeRequest one = new FakeRequest(1, List.of("VECTOR")).with("TOKENS", ints(Shape.of(1, 1), 3));
        FakeRequest two = new FakeRequest(1, List.of("VECTOR")).with("TOKENS", ints(Shape.of(1, 1), 5));
        try (FakeBatch first = new FakeBatch(embed, memory, one, two).withDevice(DEVICE)) {
            instance(new Embed(gpu), embed).execute(first);

            Tensor vectors = first.outputs().get("VECTOR");
            Fence computed = vectors.fence().orElseThrow();
            assertThat(vectors.place()).isEqualTo(DEVICE);
            assertThat(computed.isDone()).isFalse();
            assertThat(computed.await(Duration.ZERO)).isFalse();

            FakeRequest step = new FakeRequest(2, List.of("SCORE")).with("VECTOR", vectors);
            try (FakeBatch second = new FakeBatch(score, memory, step).withDevice(DEVICE)) {
                instance(new Score(gpu), score).execute(second);
                gpu.run();

                Tensor scores = second.outputs().get("SCORE");
                assertThat(scores.fence().orElseThrow().isDone()).isTrue();
                assertThat(floats(scores)).containsExactly(12f, 20f);
            }
        }
    }

    @Test
    void aServerWithoutTheDeviceRefuses() {
        FakeRequest request = new FakeRequest(1, List.of("VECTOR")).with("TOKENS", ints(Shape.of(1, 1), 3));
        try (FakeBatch batch = new FakeBatch(embed, memory, request)) {
            ModelInstance instance = instance(new Embed(gpu), embed);

            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(batch))
                    .withMessage("input 'TOKENS': no memory of " + DEVICE + " (expected: host memory)")
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.UNSUPPORTED);
        }
    }

    @Test
    void bothAcceptInputsOnTheDevice() {
        assertThat(new Embed(gpu).traits().places()).contains(MemoryPlace.Kind.GPU);
        assertThat(new Score(gpu).traits().places()).contains(MemoryPlace.Kind.GPU);
    }

    private static ModelInstance instance(Backend backend, ModelSettings settings) {
        return backend.load(new FakeModelContext(settings, Path.of("m")))
                .newInstance(new FakeInstanceContext("m_0_1", new Device(Device.Kind.GPU, 1), List.of()));
    }
}
