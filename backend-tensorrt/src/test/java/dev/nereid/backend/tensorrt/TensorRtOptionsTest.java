package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.TensorRtOptions.Priority;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TensorRtOptionsTest {
    @Test
    void readsTheConfiguration() {
        TensorRtOptions options = TensorRtOptions.of(ModelSettings.builder("m", 1)
                .json("{\"name\":\"m\",\"input\":[{\"dims\":[1,null]}],\"optimization\":{\"priority\":\"PRIORITY_MAX\","
                        + "\"cuda\":{\"graphs\":true},\"eager_batching\":true},"
                        + "\"cc_model_filenames\":{\"9.0\":\"h.plan\",\"8.0\":\"a.plan\"}}")
                .parameter("build_from_onnx", "true")
                .parameter("build_precision", "FP16")
                .parameter("build_workspace_bytes", "1000")
                .parameter("build_shapes", "IN:1x3,4x3,8x3; M:1,2,2")
                .build());

        assertThat(options)
                .isEqualTo(new TensorRtOptions(
                        true,
                        Priority.MAX,
                        true,
                        Map.of("9.0", "h.plan", "8.0", "a.plan"),
                        "model.onnx",
                        "FP16",
                        1000,
                        Map.of(
                                "IN", range(Shape.of(1, 3), Shape.of(4, 3), Shape.of(8, 3)),
                                "M", range(Shape.of(1), Shape.of(2), Shape.of(2)))));
    }

    @Test
    void hasDefaults() {
        assertThat(TensorRtOptions.of(ModelSettings.builder("m", 1)
                        .json("{}")
                        .parameter("build_from_onnx", "false")
                        .build()))
                .isEqualTo(new TensorRtOptions(false, Priority.DEFAULT, false, Map.of(), "", "FP32", 0, Map.of()));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    build_workspace_bytes | x      | build_workspace_bytes: 'x' (expected: a number of bytes)
                    build_workspace_bytes | -1     | build_workspace_bytes: '-1' (expected: 0 or more bytes)
                    build_shapes          | IN:1,2 | build_shapes: 'IN:1,2' (expected: an input, a colon and three shapes, as in IN:1x3x8x8,4x3x8x8,8x3x8x8)
                    build_shapes          | IN:1,y,2 | build_shapes: 'y' (expected: a shape, as in 1x3x8x8)
                    """)
    void refusesWrongParameters(String name, String value, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> TensorRtOptions.of(ModelSettings.builder("m", 1)
                        .json("{}")
                        .parameter(name, value)
                        .build()))
                .withMessage(message);
    }
}
