package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.onnx.ort.NativeLibraryFile;
import dev.nereid.backend.onnx.ort.NativePlatform;
import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtLibrary;
import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Instances that pass memory of a GPU to a session without providers: it computes on the CPU, and takes whatever is
 * labeled as memory of the GPU for memory of its own, which it is here.
 */
class OnnxDeviceInstanceTest {
    private static final Device GPU = new Device(Device.Kind.GPU, 0);
    private static final MemoryPlace ON_GPU = new MemoryPlace(MemoryPlace.Kind.GPU, 0);
    private static final Shape FOUR = Shape.of(4);

    private final Arena arena = Arena.ofConfined();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        NativePlatform platform = NativePlatform.current();
        library = OrtLibrary.open(
                NativeLibraryFile.unpack(platform, getClass().getClassLoader(), Path.of("target", "native")), platform);
    }

    @AfterEach
    void close() {
        library.close();
        memory.close();
        arena.close();
    }

    @Test
    void readsAndWritesMemoryOfTheGpu() throws OrtException {
        ModelSettings settings = addSub();
        try (OrtSession session = session(settings);
                OnnxInstance instance = instance(settings, session)) {
            for (int run = 0; run < 3; run++) {
                Tensor a = floats(ON_GPU, 10, 20, 30, 40 + run);
                try (FakeBatch fake = batch(settings, a, floats(ON_GPU, 1, 2, 3, 4), "sum", "difference")) {
                    WithGpu batch = new WithGpu(fake, arena, new HashMap<>());
                    instance.execute(batch);

                    assertThat(batch.written()).containsOnlyKeys("sum", "difference");
                    assertThat(written(batch, "sum")).containsExactly(11, 22, 33, 44 + run);
                    assertThat(written(batch, "difference")).containsExactly(9, 18, 27, 36 + run);
                    assertThat(fake.outputs()).isEmpty();
                }
            }
        }
    }

    @Test
    void writesOutputsOnTheHostIfAnInputComesFromThere() throws OrtException {
        ModelSettings settings = addSub();
        try (OrtSession session = session(settings);
                OnnxInstance instance = instance(settings, session)) {
            for (MemoryPlace place : List.of(ON_GPU, MemoryPlace.HOST, ON_GPU)) {
                Tensor a = floats(place, 10, 20, 30, 40);
                try (FakeBatch fake = batch(settings, a, floats(MemoryPlace.HOST, 1, 2, 3, 4), "sum")) {
                    WithGpu batch = new WithGpu(fake, arena, new HashMap<>());
                    instance.execute(batch);

                    assertThat(batch.written()).isEmpty();
                    assertThat(fake.outputs().get("sum").floats()).containsExactly(11, 22, 33, 44);
                }
            }
        }
    }

    @Test
    void writesOutputsOnTheGpuIfRequestsTakeThemThere() throws OrtException {
        ModelSettings settings = addSub();
        try (OrtSession session = session(settings);
                OnnxInstance instance = instance(settings, session)) {
            Tensor a = floats(MemoryPlace.HOST, 10, 20, 30, 40);
            try (FakeBatch fake = batch(settings, a, floats(MemoryPlace.HOST, 1, 2, 3, 4), "sum")) {
                WithGpu batch = new WithGpu(fake.takingOutputsIn(ON_GPU), arena, new HashMap<>());
                instance.execute(batch);

                assertThat(written(batch, "sum")).containsExactly(11, 22, 33, 44);
                assertThat(fake.outputs()).isEmpty();
            }
        }
    }

    /** ONNX Runtime allocates it there, since its size is not known before the run. */
    @Test
    void passesOnAnOutputOfUnknownShapeFromTheHost() throws OrtException {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .modelFilename("non_zero.onnx")
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(-1)))
                .output(TensorSpec.of("output", DataType.INT64, Shape.of(1, -1)))
                .build();
        FakeRequest request = new FakeRequest(1, List.of("output")).with("input", floats(ON_GPU, 3, 0, 4, 0));
        try (OrtSession session = session(settings);
                OnnxInstance instance = instance(settings, session);
                FakeBatch fake = new FakeBatch(settings, memory, request).withDevice(ON_GPU)) {
            instance.execute(fake);

            assertThat(fake.outputs().get("output").longs()).containsExactly(0, 2);
            assertThat(fake.outputs().get("output").place()).isEqualTo(MemoryPlace.HOST);
        }
    }

    private OrtSession session(ModelSettings settings) throws OrtException {
        OnnxModelOptions options =
                OnnxModelOptions.of(TestBackend.model(settings, 1), new OnnxBackendOptions(1, 0, 0, false, 4));
        return OrtSession.open(
                library,
                TestModels.model(settings.modelFilename()),
                options.session(),
                new OrtProviders(GPU.id(), List.of()));
    }

    private static OnnxInstance instance(ModelSettings settings, OrtSession session) throws OrtException {
        return new OnnxInstance(
                new OnnxSignature(settings, session), session.newExecution(Map.of()), new OnnxMemory(GPU));
    }

    private FakeBatch batch(ModelSettings settings, Tensor a, Tensor b, String... outputs) {
        FakeRequest request = new FakeRequest(1, List.of(outputs)).with("a", a).with("b", b);
        return new FakeBatch(settings, memory, request).withDevice(ON_GPU).withWrongOutputs();
    }

    private static float[] written(WithGpu batch, String output) {
        return batch.written().get(output).data().toArray(ValueLayout.JAVA_FLOAT);
    }

    private Tensor floats(MemoryPlace place, float... values) {
        MemorySegment data = arena.allocate(values.length * 4L, OrtProviders.ALIGNMENT);
        MemorySegment.copy(values, 0, data, ValueLayout.JAVA_FLOAT, 0, values.length);
        return Tensor.of(DataType.FP32, Shape.of(values.length), data, place);
    }

    private static ModelSettings addSub() {
        return ModelSettings.builder("m", 1)
                .modelFilename("add_sub.onnx")
                .input(TensorSpec.of("a", DataType.FP32, FOUR))
                .input(TensorSpec.of("b", DataType.FP32, FOUR))
                .output(TensorSpec.of("sum", DataType.FP32, FOUR))
                .output(TensorSpec.of("difference", DataType.FP32, FOUR))
                .build();
    }

    /** A batch with memory of the GPU that is aligned as that of the server. */
    private record WithGpu(FakeBatch batch, Arena arena, Map<String, Tensor> written) implements ForwardingBatch {
        @Override
        public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
            if (place.isHost()) {
                return batch.allocate(output, type, shape, place);
            }
            MemorySegment data = arena.allocate(shape.byteSize(type), OrtProviders.ALIGNMENT);
            Tensor tensor = Tensor.of(type, shape, data, place);
            written.put(output, tensor);
            return tensor;
        }
    }
}
