package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Places of inputs and outputs, with memory of the host that is labeled as memory of a GPU. */
class OnnxMemoryTest {
    private static final Device GPU = new Device(Device.Kind.GPU, 1);
    private static final MemoryPlace ON_GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 1);
    private static final MemoryPlace ELSEWHERE = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final MemoryPlace PINNED = new MemoryPlace(MemoryPlace.Kind.PINNED, 1);
    private static final Shape SHAPE = Shape.of(4);
    private static final ModelSettings SETTINGS = ModelSettings.builder("m", 1)
            .input(TensorSpec.of("a", DataType.FP32, SHAPE))
            .output(TensorSpec.of("sum", DataType.FP32, SHAPE))
            .build();
    private static final OnnxSignature.Output SUM =
            new OnnxSignature.Output(0, "sum", DataType.FP32, Optional.of(SHAPE), Optional.empty());

    private final Arena arena = Arena.ofConfined();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AfterEach
    void close() {
        arena.close();
        memory.close();
    }

    @Test
    void takesAnInputFromTheInstancesOwnGpu() {
        Tensor input = tensor(ON_GPU, 0);
        try (FakeBatch batch = batch(input).withDevice(ON_GPU)) {
            assertThat(new OnnxMemory(GPU).gather(batch, "a").data()).isEqualTo(input.data());
            assertThat(new OnnxMemory(GPU).gather(batch, "a").place()).isEqualTo(ON_GPU);
        }
    }

    /** ONNX Runtime copies it: a copy of the server to the GPU would only be one more. */
    @Test
    void leavesAnInputOnTheHostWhereItIs() {
        Tensor input = tensor(MemoryPlace.HOST, 0).withName("a");
        try (FakeBatch batch = batch(input).withDevice(ON_GPU)) {
            assertThat(new OnnxMemory(GPU).gather(batch, "a")).isSameAs(input);
            assertThat(new OnnxMemory(Device.CPU).gather(batch, "a")).isSameAs(input);
        }
    }

    @Test
    void asksForAnInputOnTheHostIfItIsNotAlignedForKernels() {
        Tensor host = tensor(MemoryPlace.HOST, 0);
        for (long offset : new long[] {4, 16, 128}) {
            Tensor unaligned = tensor(ON_GPU, offset);
            try (FakeBatch batch = batch(unaligned).withDevice(ON_GPU)) {
                assertThat(new OnnxMemory(GPU).gather(new Moving(batch, host), "a"))
                        .isSameAs(host);
            }
        }
    }

    @Test
    void takesNothingFromAnotherGpu() {
        Tensor host = tensor(MemoryPlace.HOST, 0);
        try (FakeBatch batch = batch(tensor(ELSEWHERE, 0))) {
            assertThat(new OnnxMemory(GPU).gather(new Moving(batch, host), "a")).isSameAs(host);
            assertThat(new OnnxMemory(Device.CPU).gather(new Moving(batch, host), "a"))
                    .isSameAs(host);
        }
    }

    @Test
    void waitsForTheWorkThatWritesAnInput() {
        TestFence fence = new TestFence(true);
        try (FakeBatch batch = batch(tensor(ON_GPU, 0).withFence(fence)).withDevice(ON_GPU)) {
            assertThat(new OnnxMemory(GPU).gather(batch, "a").place()).isEqualTo(ON_GPU);
        }
        assertThat(fence.waits).isEqualTo(1);
    }

    @Test
    void failsABatchWhoseInputIsNotWrittenInTime() {
        TestFence fence = new TestFence(false);
        try (FakeBatch batch = batch(tensor(ON_GPU, 0).withFence(fence)).withDevice(ON_GPU)) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> new OnnxMemory(GPU).gather(batch, "a"))
                    .withMessage("input 'a': work of " + ON_GPU + " did not end within 60 s")
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.INTERNAL);
        }
    }

    @Test
    void writesOutputsWhereTheInputsLie() {
        OnnxMemory onGpu = new OnnxMemory(GPU);
        try (FakeBatch batch = batch(tensor(ON_GPU, 0)).withDevice(ON_GPU).withDevice(PINNED)) {
            assertThat(onGpu.allocate(batch, SUM, SHAPE, true).place()).isEqualTo(ON_GPU);
        }
        try (FakeBatch batch = batch(tensor(ON_GPU, 0)).withDevice(ON_GPU).withDevice(PINNED)) {
            assertThat(onGpu.allocate(batch, SUM, SHAPE, false).place()).isEqualTo(PINNED);
        }
        try (FakeBatch batch = batch(tensor(MemoryPlace.HOST, 0)).withDevice(ON_GPU)) {
            assertThat(new OnnxMemory(Device.CPU)
                            .allocate(batch, SUM, SHAPE, true)
                            .place())
                    .isEqualTo(MemoryPlace.HOST);
        }
    }

    @Test
    void writesOutputsOnTheHostWhereTheServerHasNoMemoryOnTheGpu() {
        try (FakeBatch batch = batch(tensor(ON_GPU, 0))) {
            assertThat(new OnnxMemory(GPU).allocate(batch, SUM, SHAPE, true).place())
                    .isEqualTo(MemoryPlace.HOST);
        }
    }

    private FakeBatch batch(Tensor input) {
        FakeRequest request = new FakeRequest(1, List.of("sum")).with("a", input);
        return new FakeBatch(SETTINGS, memory, request).withWrongOutputs();
    }

    private Tensor tensor(MemoryPlace place, long offset) {
        MemorySegment data = arena.allocate(256, OrtProviders.ALIGNMENT).asSlice(offset, SHAPE.byteSize(DataType.FP32));
        return Tensor.of(DataType.FP32, SHAPE, data, place);
    }

    /** A batch that moves its input to the host, as the server does, which the fake cannot. */
    private record Moving(FakeBatch batch, Tensor host) implements ForwardingBatch {
        @Override
        public Tensor gather(String input) {
            return host;
        }
    }

    private static final class TestFence implements Fence {
        private final boolean ends;
        private int waits;

        TestFence(boolean ends) {
            this.ends = ends;
        }

        @Override
        public boolean isDone() {
            return false;
        }

        @Override
        public boolean await(Duration timeout) {
            waits++;
            return ends;
        }
    }
}
