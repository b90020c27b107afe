package dev.nereid.backend.onnx;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.OrtElementType;
import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class OnnxInstanceTest {
    private static final Shape ANY = Shape.of(Shape.VARIABLE);

    private final TestTensors tensors = new TestTensors();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private TestBackend backend;

    @BeforeEach
    void open() {
        backend = new TestBackend();
    }

    @AfterEach
    void close() {
        backend.close();
        tensors.close();
        memory.close();
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "BYTES")
    void passesEveryDataTypeBitByBit(DataType type) {
        OrtElementType elements = elementType(type);
        ModelSettingsBuilder settings = identity(type).maxBatchSize(8);
        MemorySegment two = tensors.random(elements, 2L * 5 * type.byteSize());
        MemorySegment one = tensors.random(elements, 5L * type.byteSize());

        try (FakeBatch batch = batch(
                settings,
                request(2, "output").with("input", Tensor.of(type, Shape.of(2, 5), two)),
                request(1, "output").with("input", Tensor.of(type, Shape.of(1, 5), one)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.marks()).containsExactly("inputsRead", "outputsComputed");
            Tensor output = batch.outputs().get("output");
            assertThat(output.type()).isEqualTo(type);
            assertThat(output.shape()).isEqualTo(Shape.of(3, 5));
            assertThat(bytes(output.data().asSlice(0, two.byteSize()))).isEqualTo(bytes(two));
            assertThat(bytes(output.data().asSlice(two.byteSize()))).isEqualTo(bytes(one));
        }
    }

    @Test
    void passesStringsOfAnyBytes() {
        ModelSettingsBuilder settings = identity(DataType.BYTES).maxBatchSize(8);
        byte[][] strings = {"text".getBytes(UTF_8), {}, {0, (byte) 0xff}, new byte[3_000]};

        try (FakeBatch batch = batch(
                settings,
                request(1, "output")
                        .with(
                                "input",
                                Tensor.of(DataType.BYTES, Shape.of(1, 2), tensors.strings(strings[0], strings[1]))),
                request(1, "output")
                        .with(
                                "input",
                                Tensor.of(DataType.BYTES, Shape.of(1, 2), tensors.strings(strings[2], strings[3]))))) {
            backend.instance(settings).execute(batch);

            Tensor output = batch.outputs().get("output");
            assertThat(output.shape()).isEqualTo(Shape.of(2, 2));
            assertThat(TestTensors.strings(output.data())).containsExactly(strings);
            assertThat(batch.allocated()).containsExactly("output");
        }
    }

    @Test
    void writesOutputsOfStaticShapeIntoMemoryOfTheServer() {
        ModelSettingsBuilder settings = addSub();

        try (FakeBatch batch = batch(settings, addSubRequest("sum", "difference"))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.allocated()).containsExactlyInAnyOrder("sum", "difference");
            assertThat(floats(batch, "sum")).containsExactly(11, 22, 33, 44);
            assertThat(floats(batch, "difference")).containsExactly(9, 18, 27, 36);
        }
    }

    @Test
    void givesOutputsOfUnknownShapeWhereTheyLie() {
        ModelSettingsBuilder settings = nonZero();

        try (FakeBatch batch = batch(settings, request(1, "output").with("input", floats(Shape.of(4), 0, 3, 0, 4)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.allocated()).isEmpty();
            assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(1, 2));
            assertThat(longs(batch, "output")).containsExactly(1, 3);
            assertThat(memory.buffersInUse()).isZero();
        }
    }

    @Test
    void givesAnOutputWithoutElements() {
        ModelSettingsBuilder settings = nonZero();

        try (FakeBatch batch = batch(settings, request(1, "output").with("input", floats(Shape.of(2), 0, 0)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(1, 0));
        }
    }

    @Test
    void takesInputsWithoutElements() {
        ModelSettingsBuilder settings = identity(DataType.FP32).maxBatchSize(8);
        ModelInstance instance = backend.instance(settings);

        try (FakeBatch batch = batch(settings, request(1, "output").with("input", floats(Shape.of(1, 0))))) {
            instance.execute(batch);

            assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(1, 0));
        }
    }

    @Test
    void fetchesOnlyOutputsThatAreWanted() {
        ModelSettingsBuilder settings = addSub();

        try (FakeBatch batch = batch(settings, addSubRequest("difference"))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.outputs()).containsOnlyKeys("difference");
            assertThat(floats(batch, "difference")).containsExactly(9, 18, 27, 36);
        }
    }

    @Test
    void fetchesOutputsThatAnyRequestOfTheBatchWants() {
        ModelSettingsBuilder settings = identity(DataType.FP32).maxBatchSize(8);

        try (FakeBatch batch = batch(
                settings,
                request(1).with("input", floats(Shape.of(1, 1), 1)),
                request(1, "output").with("input", floats(Shape.of(1, 1), 2)))) {
            backend.instance(settings).execute(batch);

            assertThat(floats(batch, "output")).containsExactly(1, 2);
        }
    }

    @Test
    void passesAndGivesScalarsInTheShapesOfTheConfiguration() {
        ModelSettingsBuilder settings = settings("negated_scalar.onnx")
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("output", DataType.FP32, Shape.of(1)));

        try (FakeBatch batch = batch(settings, request(1, "output").with("input", floats(Shape.of(1), 2.5f)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(1));
            assertThat(floats(batch, "output")).containsExactly(-2.5f);
        }
    }

    @Test
    void givesAScalarInTheConfiguredShapeWhereTheModelDeclaresNone() {
        ModelSettingsBuilder settings = settings("unknown_rank.onnx")
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("output", DataType.FP32, Shape.of(1, 1)));

        try (FakeBatch batch = batch(settings, request(1, "output").with("input", floats(Shape.of(1), 2.5f)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(1, 1));
            assertThat(floats(batch, "output")).containsExactly(2.5f);
        }
    }

    @Test
    void writesOutputsOfAWholeBatchIntoMemoryOfTheServer() {
        ModelSettingsBuilder settings = addSub("batched_add_sub.onnx").maxBatchSize(8);

        try (FakeBatch batch = batch(
                settings,
                request(2, "sum")
                        .with("a", floats(Shape.of(2, 4), 1, 2, 3, 4, 5, 6, 7, 8))
                        .with("b", floats(Shape.of(2, 4), new float[8])),
                request(1, "sum", "difference")
                        .with("a", floats(Shape.of(1, 4), 9, 9, 9, 9))
                        .with("b", floats(Shape.of(1, 4), 1, 2, 3, 4)))) {
            backend.instance(settings).execute(batch);

            assertThat(batch.allocated()).containsExactlyInAnyOrder("sum", "difference");
            assertThat(batch.outputs().get("sum").shape()).isEqualTo(Shape.of(3, 4));
            assertThat(floats(batch, "sum")).containsExactly(1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13);
            assertThat(floats(batch, "difference")).endsWith(8, 7, 6, 5);
        }
    }

    @Test
    void givesTheTrueShapeWhereTheModelIsWrongAboutIt() {
        ModelSettingsBuilder settings = settings("wrong_output_shape.onnx")
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(-1, 4)))
                .output(TensorSpec.of("output", DataType.FP32, Shape.of(1, 4)));
        ModelInstance instance = backend.instance(settings);

        for (int size = 1; size < 4; size++) {
            try (FakeBatch batch = batch(
                            settings,
                            request(1, "output").with("input", floats(Shape.of(size, 4), new float[4 * size])))
                    .withWrongOutputs()) {
                instance.execute(batch);

                assertThat(batch.outputs().get("output").shape()).isEqualTo(Shape.of(size, 4));
            }
        }
    }

    @Test
    void replacesADefaultInputOnlyWhereARequestBringsIt() {
        ModelSettingsBuilder settings = settings("default_input.onnx")
                .input(TensorSpec.of("input", DataType.FP32, Shape.of(2)))
                .input(TensorSpec.of("bias", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL))
                .output(TensorSpec.of("output", DataType.FP32, Shape.of(2)));
        ModelInstance instance = backend.instance(settings);

        for (int run = 0; run < 2; run++) {
            try (FakeBatch with = batch(
                            settings,
                            request(1, "output")
                                    .with("input", floats(Shape.of(2), 10, 10))
                                    .with("bias", floats(Shape.of(2), 5, 5)));
                    FakeBatch without =
                            batch(settings, request(1, "output").with("input", floats(Shape.of(2), 10, 10)))) {
                instance.execute(with);
                instance.execute(without);

                assertThat(floats(with, "output")).containsExactly(15, 15);
                assertThat(floats(without, "output")).containsExactly(11, 12);
            }
        }
    }

    @Test
    void reportsOnnxRuntimesOwnErrorAndServesOn() {
        ModelSettingsBuilder settings = settings("gather.onnx")
                .input(TensorSpec.of("index", DataType.INT64, ANY))
                .output(TensorSpec.of("output", DataType.FP32, ANY));
        ModelInstance instance = backend.instance(settings);
        try (FakeBatch bad = batch(settings, request(1, "output").with("index", longs(9)))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(bad))
                    .withMessageMatching("onnx runtime error \\d+: .*idx=9 must be within the inclusive range.*")
                    .extracting(BackendException::code)
                    .isEqualTo(ErrorCode.INTERNAL);
        }

        try (FakeBatch good = batch(settings, request(1, "output").with("index", longs(3)))) {
            instance.execute(good);

            assertThat(floats(good, "output")).containsExactly(3);
        }
    }

    @Test
    void servesOnWhenMemoryRanOut() {
        ModelSettingsBuilder settings = addSub();
        ModelInstance instance = backend.instance(settings);
        LeakCheckingMemory little = new LeakCheckingMemory(20);
        try (FakeBatch poor = new FakeBatch(settings.build(), little, addSubRequest("sum", "difference"))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(poor))
                    .withMessageContaining("out of memory");
        }
        little.close();

        try (FakeBatch batch = batch(settings, addSubRequest("sum"))) {
            instance.execute(batch);

            assertThat(floats(batch, "sum")).containsExactly(11, 22, 33, 44);
        }
    }

    @Test
    void reportsWhichInputTheModelDoesNotHave() {
        ModelSettingsBuilder settings = addSub();
        ModelInstance instance = backend.instance(settings);
        try (FakeBatch batch = batch(settings, addSubRequest("sum").with("c", floats(Shape.of(1), 1)))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> instance.execute(batch))
                    .withMessage("unexpected inference input 'c': the model has none of that name");
        }
    }

    private ModelSettingsBuilder identity(DataType type) {
        return settings("identity_" + elementType(type).name().toLowerCase(java.util.Locale.ROOT) + ".onnx")
                .input(TensorSpec.of("input", type, ANY))
                .output(TensorSpec.of("output", type, ANY));
    }

    private static ModelSettingsBuilder addSub() {
        return addSub("add_sub.onnx");
    }

    private static ModelSettingsBuilder addSub(String file) {
        return settings(file)
                .input(TensorSpec.of("a", DataType.FP32, Shape.of(4)))
                .input(TensorSpec.of("b", DataType.FP32, Shape.of(4)))
                .output(TensorSpec.of("sum", DataType.FP32, Shape.of(4)))
                .output(TensorSpec.of("difference", DataType.FP32, Shape.of(4)));
    }

    private FakeRequest addSubRequest(String... outputs) {
        return request(1, outputs)
                .with("a", floats(Shape.of(4), 10, 20, 30, 40))
                .with("b", floats(Shape.of(4), 1, 2, 3, 4));
    }

    private static ModelSettingsBuilder nonZero() {
        return settings("non_zero.onnx")
                .input(TensorSpec.of("input", DataType.FP32, ANY))
                .output(TensorSpec.of("output", DataType.INT64, Shape.of(1, -1)));
    }

    private static ModelSettingsBuilder settings(String file) {
        return ModelSettings.builder("m", 1).modelFilename(file);
    }

    private FakeBatch batch(ModelSettingsBuilder settings, FakeRequest... requests) {
        return new FakeBatch(settings.build(), memory, requests);
    }

    private static FakeRequest request(int batchSize, String... outputs) {
        return new FakeRequest(batchSize, List.of(outputs));
    }

    private Tensor floats(Shape shape, float... values) {
        return Tensor.of(DataType.FP32, shape, tensors.floats(values));
    }

    private Tensor longs(long... values) {
        return Tensor.of(DataType.INT64, Shape.of(values.length), tensors.longs(values));
    }

    private static float[] floats(FakeBatch batch, String output) {
        return TestTensors.floats(batch.outputs().get(output).data());
    }

    private static long[] longs(FakeBatch batch, String output) {
        return batch.outputs().get(output).data().toArray(ValueLayout.JAVA_LONG);
    }

    private static byte[] bytes(MemorySegment segment) {
        return TestTensors.bytes(segment);
    }

    private static OrtElementType elementType(DataType type) {
        for (OrtElementType candidate : OrtElementType.values()) {
            if (OnnxTensors.dataType(candidate).filter(type::equals).isPresent()) {
                return candidate;
            }
        }
        throw new AssertionError("no element type for " + type);
    }
}
