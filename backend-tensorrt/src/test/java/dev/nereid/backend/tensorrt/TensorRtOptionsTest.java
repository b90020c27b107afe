package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.TensorRtOptions.Priority;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TensorRtOptionsTest {
    @Test
    void readsTheConfiguration() {
        TensorRtOptions options = TensorRtOptions.of(context(
                        "{\"name\":\"m\",\"input\":[{\"dims\":[1,null]}],\"optimization\":{\"priority\":\"PRIORITY_MAX\","
                                + "\"cuda\":{\"graphs\":true},\"eager_batching\":true},"
                                + "\"cc_model_filenames\":{\"9.0\":\"h.plan\",\"8.0\":\"a.plan\"}}")
                .withParameter("build_from_onnx", "true")
                .withParameter("build_precision", "FP16")
                .withParameter("build_workspace_bytes", "1000")
                .withParameter("build_shapes", "IN:1x3,4x3,8x3; M:1,2,2"));

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
        assertThat(TensorRtOptions.of(context("{}").withParameter("build_from_onnx", "false")))
                .isEqualTo(new TensorRtOptions(false, Priority.DEFAULT, false, Map.of(), "", "FP32", 0, Map.of()));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "build_workspace_bytes | x        | 0 or more bytes, or a number with K, M, G or T",
                "build_workspace_bytes | -1       | 0 or more bytes, or a number with K, M, G or T",
                "build_shapes          | IN:1,2   | inputs, each with a colon and three shapes, separated by semicolons, as in"
                        + " IN:1x3x8x8,4x3x8x8,8x3x8x8",
                "build_shapes          | IN:1,y,2 | inputs, each with a colon and three shapes, separated by semicolons, as in"
                        + " IN:1x3x8x8,4x3x8x8,8x3x8x8"
            })
    void refusesWrongParameters(String name, String value, String expected) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> TensorRtOptions.of(context("{}").withParameter(name, value)))
                .withMessage("parameter '" + name + "': " + value + " (expected: " + expected + ")");
    }

    private static FakeModelContext context(String json) {
        return new FakeModelContext(ModelSettings.builder("m", 1).json(json).build(), Path.of("m"));
    }
}
