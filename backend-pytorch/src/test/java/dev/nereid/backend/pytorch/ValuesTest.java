package dev.nereid.backend.pytorch;

import static dev.nereid.backend.pytorch.TestBackend.bytes;
import static dev.nereid.backend.pytorch.TestBackend.floats;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Numbers of every type: their bits come out as they went in. */
class ValuesTest {
    private static final String IDENTITY = "def forward(self, a: Tensor):\n    return a";
    private static final String CLONE = "def forward(self, a: Tensor):\n    return a.clone()";
    private static final Shape OPEN = Shape.of(Shape.VARIABLE);

    @TempDir
    private Path directory;

    private TestBackend test;

    @BeforeEach
    void open() {
        test = new TestBackend(directory);
    }

    @AfterEach
    void close() {
        test.close();
    }

    private static byte[] random(DataType type, int elements) {
        byte[] content = new byte[elements * type.byteSize()];
        new Random(elements).nextBytes(content); // NaNs of all kinds are among them
        for (int i = 0; i < content.length && type == DataType.BOOL; i++) {
            content[i] &= 1;
        }
        return content;
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"BYTES", "UINT16", "UINT32", "UINT64"},
            mode = EnumSource.Mode.EXCLUDE)
    void passesEveryTypeBitForBit(DataType type) {
        TestBackend.Served clone = test.serve(CLONE, TestBackend.one(type, OPEN, OPEN));
        TestBackend.Served identity = test.serve(IDENTITY, TestBackend.one(type, OPEN, OPEN));
        for (int elements : new int[] {1, 3, 4096, 100_003}) {
            byte[] content = random(type, elements);
            Tensor a = test.tensor(type, Shape.of(elements), content, 0);
            assertThat(bytes(clone.run(a))).isEqualTo(content);
            assertThat(bytes(identity.run(a))).isEqualTo(content);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"BYTES", "UINT16", "UINT32", "UINT64"},
            mode = EnumSource.Mode.EXCLUDE)
    void readsInputsAtAnyAddress(DataType type) {
        String source = "def forward(self, a: Tensor):\n    return (a.to(7) + 1).to(a.dtype)";
        TestBackend.Served served = test.serve(source, TestBackend.one(type, OPEN, OPEN));
        byte[] content = random(DataType.BOOL, 257 * type.byteSize()); // denormal or small numbers
        Tensor aligned = test.tensor(type, Shape.of(257), content, 0);
        byte[] expected = bytes(served.run(aligned));
        for (int offset = 1; offset < 64; offset += 7) {
            Tensor shifted = test.tensor(type, Shape.of(257), content, offset);
            assertThat(bytes(served.run(shifted))).isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = DataType.class,
            names = {"BYTES", "UINT16", "UINT32", "UINT64"},
            mode = EnumSource.Mode.EXCLUDE)
    void passesEmptyTensors(DataType type) {
        TestBackend.Served served = test.serve(CLONE, TestBackend.one(type, Shape.of(-1, 3, -1), Shape.of(-1, 3, -1)));

        Tensor output = served.run(test.tensor(type, Shape.of(0, 3, 7), new byte[0], 0));

        assertThat(output.shape()).isEqualTo(Shape.of(0, 3, 7));
        assertThat(output.type()).isEqualTo(type);
        assertThat(output.byteSize()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"a + 1", "a", "torch.relu(a)", "a.t()", "a[:, :0]", "torch.cat([a, a])", "a.sum(dim=[1])"})
    void computesWithoutElements(String expression) {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return " + expression,
                TestBackend.one(DataType.FP32, Shape.of(-1, -1), OPEN));
        try (var batch = served.batch(served.request(1).with("a", test.floats(Shape.of(0, 5))))
                .withWrongOutputs()) {
            served.instance.execute(batch);
            Tensor output = batch.outputs().get("OUT__0");
            assertThat(output.shape().elementCount()).isZero();
            assertThat(output.byteSize()).isZero();
        }
    }

    @Test
    void returnsZeroDimensionalTensorsWithOneDimension() {
        TestBackend.Served served =
                test.serve("def forward(self, a: Tensor):\n    return a.sum()", TestBackend.vector());

        Tensor output = served.run(test.floats(Shape.of(3), 1, 2, 4));

        assertThat(output.shape()).isEqualTo(Shape.of(1));
        assertThat(floats(output)).containsExactly(7);
    }

    @ParameterizedTest
    @CsvSource({
        "INT64, int(a.sum().item()), 7",
        "FP64, float(a.sum().item()), 7",
        "BOOL, bool(a.sum().item() > 0), 1",
        "INT64, -9223372036854775807, -9223372036854775807",
        "BOOL, False, 0"
    })
    void returnsNumbersWithOneDimension(DataType type, String expression, long expected) {
        TestBackend.Served served =
                test.serve("def forward(self, a: Tensor):\n    return " + expression, settings(type));

        Tensor output = served.run(test.floats(Shape.of(3), 1, 2, 4));

        assertThat(output.shape()).isEqualTo(Shape.of(1));
        ByteBuffer data = ByteBuffer.wrap(bytes(output)).order(ByteOrder.LITTLE_ENDIAN);
        long value =
                type == DataType.FP64 ? (long) data.getDouble() : type == DataType.BOOL ? data.get() : data.getLong();
        assertThat(value).isEqualTo(expected);
    }

    private static ModelSettingsBuilder settings(DataType output) {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("a", DataType.FP32, OPEN))
                .output(TensorSpec.of("OUT__0", output, OPEN));
    }

    @Test
    void keepsBitsOfScalarsOfTheScript() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return [float('nan'), float('inf'), -0.0, 1e308]",
                settings(DataType.FP64));

        double[] values = served.run(test.floats(Shape.of(1), 0)).doubles();

        assertThat(values).hasSize(4);
        assertThat(values[0]).isNaN();
        assertThat(values[1]).isEqualTo(Double.POSITIVE_INFINITY);
        assertThat(Double.doubleToRawLongBits(values[2])).isEqualTo(Long.MIN_VALUE);
        assertThat(values[3]).isEqualTo(1e308);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {"a.to(9); ComplexFloat", "torch.quantize_per_tensor(a, 0.1, 0, 13); QUInt8", "a.to(27); UInt16"})
    void refusesTypesThatClientsDoNotKnow(String expression, String type) {
        TestBackend.Served served =
                test.serve("def forward(self, a: Tensor):\n    return " + expression, TestBackend.vector());

        assertThat(served.fails(Map.of("a", test.floats(Shape.of(2), 1, 2))))
                .hasMessageContaining("configuration expects datatype TYPE_FP32 for output 'OUT__0', model provides"
                        + " TYPE_<invalid>")
                .hasMessageContaining(type);
    }

    @Test
    void resolvesValuesThatAreNegatedLazily() {
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return torch.imag(torch.conj(torch.complex(a, a)))",
                TestBackend.vector());

        assertThat(floats(served.run(test.floats(Shape.of(3), 1, -2, 3)))).containsExactly(-1, 2, -3);
    }

    @Test
    void refusesSparseAndMetaTensors() {
        TestBackend.Served sparse =
                test.serve("def forward(self, a: Tensor):\n    return a.to_sparse()", TestBackend.vector());
        assertThat(sparse.fails(Map.of("a", test.floats(Shape.of(2), 1, 0))))
                .hasMessageContaining("output tensor 'OUT__0' is not found");

        TestBackend.Served meta = test.serve(
                "def forward(self, a: Tensor):\n    return torch.zeros([2], device='meta')", TestBackend.vector());
        assertThat(meta.fails(Map.of("a", test.floats(Shape.of(2), 1, 0)))).hasMessageContaining("memory of the host");
    }

    @Test
    void passesManyDimensions() {
        Shape shape = Shape.of(1, 2, 1, 2, 1, 2, 1, 2, 1, 2);
        TestBackend.Served served = test.serve(
                "def forward(self, a: Tensor):\n    return a.transpose(1, 9)",
                TestBackend.one(DataType.FP32, shape, shape));
        assertThat(served.run(test.floats(shape, TestModels.numbers(32, 1))).shape())
                .isEqualTo(shape);
    }
}
