package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class IdentityModelTest {
    @Test
    void pairsInputsAndOutputsByTheirNumber() throws BackendException {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(spec("INPUT0", DataType.FP32))
                .input(spec("INPUT1", DataType.BYTES))
                .output(spec("OUTPUT1", DataType.BYTES))
                .output(spec("OUTPUT0", DataType.FP32))
                .parameter("execute_delay_ms", "300")
                .build();

        IdentityModel model = IdentityModel.of(settings);

        assertThat(model.outputs()).isEqualTo(Map.of("INPUT0", "OUTPUT0", "INPUT1", "OUTPUT1"));
        assertThat(model.delayNanos()).isEqualTo(300_000_000);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-1", "1.5", "soon"})
    void refusesADelayThatIsNoNumberOfMilliseconds(String delay) {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .parameter("execute_delay_ms", delay)
                .build();

        assertThatThrownBy(() -> IdentityModel.of(settings))
                .isInstanceOf(BackendException.class)
                .hasMessage("execute_delay_ms: '%s' (expected: a whole number of milliseconds, 0 or more)", delay);
    }

    @Test
    void refusesTensorsThatHaveNoPartner() {
        assertRefused(
                ModelSettings.builder("m", 1).input(spec("image", DataType.FP32)),
                "input: 'image' (expected: a name that starts with INPUT)");
        assertRefused(
                ModelSettings.builder("m", 1).input(spec("INPUT0", DataType.FP32)),
                "input: 'INPUT0' (expected: an output 'OUTPUT0' beside it)");
        assertRefused(
                ModelSettings.builder("m", 1).output(spec("OUTPUT0", DataType.FP32)),
                "output: 'OUTPUT0' (expected: the output of an input, OUTPUT<i> of INPUT<i>)");
        assertRefused(
                ModelSettings.builder("m", 1)
                        .input(spec("INPUT0", DataType.FP32))
                        .output(spec("OUTPUT0", DataType.FP16)),
                "output 'OUTPUT0': FP16 (expected: FP32, the type of input 'INPUT0')");
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatThrownBy(() -> IdentityModel.of(settings.build()))
                .isInstanceOf(BackendException.class)
                .hasMessage(message);
    }

    private static TensorSpec spec(String name, DataType type) {
        return TensorSpec.of(name, type, Shape.of(Shape.VARIABLE));
    }
}
