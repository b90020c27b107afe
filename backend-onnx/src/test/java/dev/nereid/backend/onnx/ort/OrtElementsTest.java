package dev.nereid.backend.onnx.ort;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Tensors of every element type and of unusual shapes. */
class OrtElementsTest {
    /** The element types that models contain directly, each with an {@code identity_} model of its own. */
    @SuppressWarnings("unused") // by its name
    private static final List<OrtElementType> TYPES = List.of(
            OrtElementType.FLOAT,
            OrtElementType.DOUBLE,
            OrtElementType.FLOAT16,
            OrtElementType.BFLOAT16,
            OrtElementType.INT8,
            OrtElementType.INT16,
            OrtElementType.INT32,
            OrtElementType.INT64,
            OrtElementType.UINT8,
            OrtElementType.UINT16,
            OrtElementType.UINT32,
            OrtElementType.UINT64,
            OrtElementType.BOOL);

    private final TestTensors tensors = new TestTensors();
    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        library.close();
        tensors.close();
    }

    @ParameterizedTest
    @FieldSource("TYPES")
    void keepsEveryBitOfEveryElementType(OrtElementType type) throws OrtException {
        MemorySegment input = tensors.random(type, type.byteSize(3, 5));

        OrtValue output = runIdentity("identity_" + lowerCase(type), input, 3, 5);

        assertThat(output.type()).isEqualTo(type);
        assertThat(output.shape()).containsExactly(3, 5);
        assertThat(TestTensors.bytes(output.data())).isEqualTo(TestTensors.bytes(input));
        output.close();
    }

    @ParameterizedTest
    @FieldSource("TYPES")
    void writesEveryElementTypeIntoTheMemoryOfTheCaller(OrtElementType type) throws OrtException {
        MemorySegment input = tensors.random(type, type.byteSize(2, 7));
        MemorySegment target = tensors.empty(input.byteSize());

        try (OrtSession session = session("identity_" + lowerCase(type));
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, input, 2, 7);
            execution.output(0, target, 2, 7);
            execution.run();
            execution.end();
        }

        assertThat(TestTensors.bytes(target)).isEqualTo(TestTensors.bytes(input));
    }

    @Test
    void keepsStringsOfAnyBytes() throws OrtException {
        byte[][] strings = {
            "plain".getBytes(UTF_8), {}, {0}, {'a', 0, 'b', 0}, {(byte) 0xff, (byte) 0xc3}, new byte[70_000]
        };

        try (OrtValue output = runIdentity("identity_string", tensors.strings(strings), 2, 3)) {
            MemorySegment target = tensors.empty(output.stringBytes());
            output.copyStrings(target);

            assertThat(output.type()).isEqualTo(OrtElementType.STRING);
            assertThat(output.shape()).containsExactly(2, 3);
            assertThat(TestTensors.strings(target)).containsExactly(strings);
        }
    }

    @Test
    void keepsASingleEmptyString() throws OrtException {
        try (OrtValue output = runIdentity("identity_string", tensors.strings(new byte[0]), 1, 1)) {
            MemorySegment target = tensors.empty(output.stringBytes());
            output.copyStrings(target);

            assertThat(TestTensors.strings(target)).containsExactly(new byte[0]);
        }
    }

    @Test
    void keepsTensorsWithoutStrings() throws OrtException {
        try (OrtValue output = runIdentity("identity_string", MemorySegment.NULL, 0, 3)) {
            assertThat(output.shape()).containsExactly(0, 3);
            assertThat(output.stringBytes()).isZero();
            output.copyStrings(MemorySegment.NULL);
        }
    }

    @Test
    void refusesStringsThatDoNotFitTheShape() throws OrtException {
        MemorySegment two = tensors.strings(new byte[] {1}, new byte[] {2, 3});
        MemorySegment cut = two.asSlice(0, two.byteSize() - 1);

        try (OrtSession session = session("identity_string");
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            assertThatThrownBy(() -> execution.input(0, two, 1, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("strings: 11 bytes (expected: 5 for 1 strings)");
            assertThatThrownBy(() -> execution.input(0, cut, 1, 2))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("strings: end within string 1 (expected: 2 strings)");
            assertThatThrownBy(() -> execution.input(0, two, 1, 3))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("strings: end within string 2 (expected: 3 strings)");
            execution.end();
        }
    }

    @Test
    void keepsTensorsWithoutElements() throws OrtException {
        try (OrtValue output = runIdentity("identity_float", MemorySegment.NULL, 0, 4)) {
            assertThat(output.shape()).containsExactly(0, 4);
            assertThat(output.data().byteSize()).isZero();
        }
    }

    @Test
    void computesAScalar() throws OrtException {
        try (OrtValue output = runIdentity("negated_scalar", tensors.floats(2.5f))) {
            assertThat(output.shape()).isEmpty();
            assertThat(TestTensors.floats(output.data())).containsExactly(-2.5f);
        }
    }

    @Test
    void takesAnyShapeWhereTheModelDeclaresNone() throws OrtException {
        long[] manyDimensions = new long[20];
        Arrays.fill(manyDimensions, 1);

        try (OrtValue scalar = runIdentity("unknown_rank", tensors.floats(1));
                OrtValue cube = runIdentity("unknown_rank", tensors.floats(new float[8]), 2, 2, 2);
                OrtValue deep = runIdentity("unknown_rank", tensors.floats(7), manyDimensions)) {
            assertThat(scalar.shape()).isEmpty();
            assertThat(cube.shape()).containsExactly(2, 2, 2);
            assertThat(deep.shape()).isEqualTo(manyDimensions);
        }
    }

    private OrtValue runIdentity(String model, MemorySegment input, long... shape) throws OrtException {
        try (OrtSession session = session(model);
                OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            execution.input(0, input, shape);
            execution.output(0);
            execution.run();
            OrtValue output = execution.takeOutput(0);
            execution.end();
            return output; // outlives session and execution
        }
    }

    private OrtSession session(String model) throws OrtException {
        return OrtSession.open(library, TestModels.model(model + ".onnx"), OrtSessionOptions.DEFAULTS);
    }

    private static String lowerCase(OrtElementType type) {
        return type.name().toLowerCase(Locale.ROOT);
    }
}
