package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Every data type, shape and place in memory, through a graph that returns its input. */
class TensorFlowTypesTest {
    @TempDir
    private Path directory;

    private ModelSettingsBuilder identity(DataType type, Shape dims, long... graphDims) {
        org.tensorflow.proto.DataType tf = tensorFlow(type);
        new GraphFiles()
                .placeholder("x", tf, graphDims)
                .operation("y", "Identity", tf, "x")
                .write(directory.resolve("model.graphdef"));
        return ModelSettings.builder("m", 1)
                .modelFilename("model.graphdef")
                .input(TensorSpec.of("x", type, dims))
                .output(TensorSpec.of("y", type, dims));
    }

    private static org.tensorflow.proto.DataType tensorFlow(DataType type) {
        return switch (type) {
            case FP16 -> org.tensorflow.proto.DataType.DT_HALF;
            case FP32 -> org.tensorflow.proto.DataType.DT_FLOAT;
            case FP64 -> org.tensorflow.proto.DataType.DT_DOUBLE;
            case BF16 -> org.tensorflow.proto.DataType.DT_BFLOAT16;
            case BYTES -> org.tensorflow.proto.DataType.DT_STRING;
            default -> org.tensorflow.proto.DataType.valueOf("DT_" + type.name());
        };
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "BYTES")
    void returnsEveryTypeUnchanged(DataType type) {
        ModelSettingsBuilder settings = identity(type, Shape.of(-1, 3), -1, 3);
        byte[] content = new byte[6 * type.byteSize()];
        new Random(1).nextBytes(content);
        if (type == DataType.BOOL) {
            content = new byte[] {1, 0, 0, 1, 1, 0};
        }
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            for (int offset : new int[] {0, 1, 7, 32, 63}) {
                Tensor input = test.tensor(type, Shape.of(2, 3), content, offset);

                Tensor output = test.run(instance, settings.build(), 1, Map.of("x", input))
                        .get("y");

                assertThat(output.shape()).isEqualTo(Shape.of(2, 3));
                assertThat(output.data().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content);
            }
        }
    }

    @Test
    void returnsTextsOfAnyBytesAndLengths() {
        ModelSettingsBuilder settings = identity(DataType.BYTES, Shape.of(-1), -1);
        List<byte[]> texts = List.of(
                new byte[0],
                "short".getBytes(StandardCharsets.UTF_8),
                "exactly twenty-two byte".getBytes(StandardCharsets.UTF_8),
                new byte[] {(byte) 0xff, 0, (byte) 0xc3},
                "long ".repeat(10_000).getBytes(StandardCharsets.UTF_8));
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);

            Tensor output = test.run(
                            instance, settings.build(), 1, Map.of("x", Tensor.ofByteStrings(Shape.of(5), texts)))
                    .get("y");

            assertThat(output.byteStrings()).containsExactlyElementsOf(texts);
            Tensor none = test.run(
                            instance, settings.build(), 1, Map.of("x", Tensor.ofByteStrings(Shape.of(0), List.of())))
                    .get("y");
            assertThat(none.shape()).isEqualTo(Shape.of(0));
        }
    }

    @ParameterizedTest
    @CsvSource({"0,3", "2,0", "0,0"})
    void returnsTensorsWithoutElements(long rows, long columns) {
        ModelSettingsBuilder settings = identity(DataType.FP32, Shape.of(-1, -1), -1, -1);
        try (TestBackend test = new TestBackend(directory)) {
            Tensor output = test.run(
                            test.instance(settings),
                            settings.build(),
                            1,
                            Map.of("x", test.floats(Shape.of(rows, columns))))
                    .get("y");

            assertThat(output.shape()).isEqualTo(Shape.of(rows, columns));
            assertThat(output.byteSize()).isZero();
        }
    }

    @Test
    void passesOneElementAsAScalar() {
        ModelSettingsBuilder settings = identity(DataType.FP32, Shape.of(1));
        try (TestBackend test = new TestBackend(directory)) {
            Tensor output = test.run(
                            test.instance(settings), settings.build(), 1, Map.of("x", test.floats(Shape.of(1), 7)))
                    .get("y");

            assertThat(output.shape()).isEqualTo(Shape.of(1));
            assertThat(TestBackend.floats(output)).containsExactly(7);
        }
    }

    @Test
    void takesAnyShapeWhereTheGraphDeclaresNone() {
        ModelSettingsBuilder settings = identity(DataType.FP32, Shape.of(-1, -1, -1), (long[]) null);
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            for (Shape shape : List.of(Shape.of(1, 2, 3), Shape.of(3, 2, 1), Shape.of(6, 1, 1))) {
                Tensor output = test.run(
                                instance, settings.build(), 1, Map.of("x", test.floats(shape, 1, 2, 3, 4, 5, 6)))
                        .get("y");

                assertThat(output.shape()).isEqualTo(shape);
                assertThat(TestBackend.floats(output)).containsExactly(1, 2, 3, 4, 5, 6);
            }
        }
    }

    @Test
    void usesAlignedInputsAndOutputsInPlace() {
        ModelSettingsBuilder settings = identity(DataType.FP32, Shape.of(-1), -1);
        try (TestBackend test = new TestBackend(directory)) {
            ModelInstance instance = test.instance(settings);
            Tensor aligned = test.floats(Shape.of(16), new float[16]);

            assertThat(addressOfOutput(test, instance, settings, aligned))
                    .isEqualTo(aligned.data().address());
            Tensor shifted = test.tensor(DataType.FP32, Shape.of(1), new byte[4], 4);
            assertThat(addressOfOutput(test, instance, settings, shifted))
                    .isNotEqualTo(shifted.data().address());
        }
    }

    private static long addressOfOutput(
            TestBackend test, ModelInstance instance, ModelSettingsBuilder settings, Tensor input) {
        FakeRequest request = new FakeRequest(1, List.of("y")).with("x", input);
        try (FakeBatch batch = new FakeBatch(settings.build(), test.memory, request)) {
            instance.execute(batch);
            return batch.outputs().get("y").data().address();
        }
    }
}
