package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class InputTensorTest {
    private static final MemorySegment EIGHT_BYTES = MemorySegment.ofArray(new byte[8]);

    @Test
    void keepsValuesAsReceived() {
        MemoryPlace place = new MemoryPlace(MemoryPlace.Kind.GPU, 1);

        InputTensor input = InputTensor.of("x", "FOO", new long[] {-7, 3}, EIGHT_BYTES, place);

        assertThat(input.name()).isEqualTo("x");
        assertThat(input.datatype()).isEqualTo("FOO");
        assertThat(input.rank()).isEqualTo(2);
        assertThat(input.dim(0)).isEqualTo(-7);
        assertThat(input.dims()).containsExactly(-7, 3);
        assertThat(input.data()).isSameAs(EIGHT_BYTES);
        assertThat(input.place()).isSameAs(place);
        assertThat(input).hasToString("x FOO [-7,3]");
    }

    @Test
    void takesTensors() {
        InputTensor input = InputTensor.of("x", Tensor.of(DataType.FP32, Shape.of(1, 2), EIGHT_BYTES));

        assertThat(input).hasToString("x FP32 [1,2]");
        assertThat(input.data()).isSameAs(EIGHT_BYTES);
        assertThat(input.place()).isEqualTo(MemoryPlace.HOST);
    }

    @Test
    void countsElements() {
        assertThat(InputTensor.elementCount("x")).isEqualTo(1);
        assertThat(InputTensor.elementCount("x", 2, 3)).isEqualTo(6);
        assertThat(InputTensor.elementCount("x", 2, 0, 3)).isZero();
        assertThat(InputTensor.byteSize("x", DataType.FP64, 2, 3)).isEqualTo(48);
        assertThat(InputTensor.byteSize("x", DataType.BYTES, 2, 3)).isZero();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            1 | -9223372036854775808 | invalid shape for input 'x': shape [1,-9223372036854775808] contains one or more invalid dimensions
            0 | -1 | invalid shape for input 'x': shape [0,-1] contains one or more invalid dimensions
            4294967296 | 4294967296 | invalid shape for input 'x': shape [4294967296,4294967296] causes total element count to exceed maximum size of 9223372036854775807
            1 | 4611686018427387904 | byte size overflow for input 'x': element count (4611686018427387904) * data type size (4) exceeds maximum allowed size (9223372036854775807)
            """)
    void refusesShapesWhoseSizeOverflows(long first, long second, String message) {
        InferenceException error = catchThrowableOfType(
                InferenceException.class, () -> InputTensor.byteSize("x", DataType.FP32, first, second));

        assertThat(error.publicMessage()).isEqualTo(message);
        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void refusesTooLargeShapesWhateverTheOrder() {
        assertThat(catchThrowableOfType(
                        InferenceException.class, () -> InputTensor.elementCount("x", 0, 1L << 32, 1L << 32)))
                .hasMessageContaining("causes total element count to exceed");
    }
}
