package dev.nereid.examples.vision;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.contract.ContractModel;
import dev.nereid.testkit.contract.LocalModel;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Wrong configurations fail the load, with the field, what was found and what was expected. */
class ConfigurationTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "mean       | 1, 2    | parameter 'mean': 1, 2 (expected: three numbers, for red, green and blue)",
                "mean       | 1, x, 2 | parameter 'mean': 1, x, 2 (expected: three numbers, for red, green and blue)",
                "mean       | 1,NaN,2 | parameter 'mean': 1,NaN,2 (expected: three numbers, for red, green and blue)",
                "deviation  | 1, 1, 0 | parameter 'deviation': 1, 1, 0 (expected: three numbers above 0)",
                "max_pixels | 0       | parameter 'max_pixels': 0 (expected: 1 to 2147483647)",
                "max_pixels | many    | parameter 'max_pixels': many (expected: an integer, 1 to 2147483647)"
            })
    void parametersOfImagePreprocess(String name, String value, String message) {
        ContractModel model =
                ContractModel.of(preprocess(Shape.of(3, 2, 2)).build()).withParameter(name, value);

        assertThatThrownBy(() -> LocalModel.load(new ImagePreprocess(), model)).hasMessageContaining(message);
    }

    @Test
    void tensorsOfImagePreprocess() {
        assertRefused(
                new ImagePreprocess(),
                preprocess(Shape.of(2, 2, 3)),
                "output dims: '[2,2,3]' (expected: [3,height,width])");
        assertRefused(
                new ImagePreprocess(),
                preprocess(Shape.of(3, 2, 2)).output(TensorSpec.of("OUT2", DataType.FP32, Shape.of(1))),
                "(expected: one tensor of FP32)");
    }

    @Test
    void labelsOfPostprocess() {
        ModelSettingsBuilder settings = ModelSettings.builder("post", 1)
                .input(TensorSpec.of("SCORES", DataType.FP32, Shape.of(3)))
                .output(TensorSpec.of("JSON", DataType.BYTES, Shape.of(1)));

        assertRefused(new Postprocess(), settings, "labels.txt: cannot be read");
    }

    private static ModelSettingsBuilder preprocess(Shape output) {
        return ModelSettings.builder("pre", 1)
                .input(TensorSpec.of("IN", DataType.BYTES, Shape.of(1)))
                .output(TensorSpec.of("OUT", DataType.FP32, output));
    }

    private static void assertRefused(BackendProvider provider, ModelSettingsBuilder settings, String message) {
        assertThatThrownBy(() -> LocalModel.load(provider, ContractModel.of(settings.build())))
                .hasMessageContaining(message);
    }
}
