package dev.nereid.examples.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeModelContext;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class IdentityModelTest {
    @Test
    void pairsInputsAndOutputsByTheirNumber() {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .input(spec("INPUT0", DataType.FP32))
                .input(spec("INPUT1", DataType.BYTES))
                .output(spec("OUTPUT1", DataType.BYTES))
                .output(spec("OUTPUT0", DataType.FP32))
                .build();

        IdentityModel model = IdentityModel.of(context(settings).withParameter("execute_delay_ms", "300"));

        assertThat(model.outputs()).isEqualTo(Map.of("INPUT0", "OUTPUT0", "INPUT1", "OUTPUT1"));
        assertThat(model.delays()).isEqualTo(new IdentityDelays(300_000_000, 0, 0));
        assertThat(model.defaults()).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "-1", "1.5", "soon"})
    void refusesADelayThatIsNoNumberOfMilliseconds(String delay) {
        FakeModelContext context =
                context(ModelSettings.builder("m", 1).build()).withParameter("execute_delay_ms", delay);

        assertThatThrownBy(() -> IdentityModel.of(context))
                .isInstanceOf(BackendException.class)
                .hasMessage(
                        "parameter 'execute_delay_ms': %s (expected: 0 or more milliseconds, or a number with ns, us, ms,"
                                + " s, m, h or d; at most 292 years)",
                        delay);
    }

    @ParameterizedTest
    @ValueSource(strings = {"instance_wise_delay_multiplier", "creation_delay_sec"})
    void refusesOtherParametersThatAreNoNumbers(String parameter) {
        FakeModelContext context =
                context(ModelSettings.builder("m", 1).build()).withParameter(parameter, "-2");

        assertThatThrownBy(() -> IdentityModel.of(context))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("parameter '%s': -2 (expected: 0 ", parameter);
    }

    @Test
    void multipliesTheDelayByTheNumberOfTheInstance() {
        IdentityDelays delays = IdentityModel.of(
                        context(ModelSettings.builder("m", 1).build())
                                .withParameter("execute_delay_ms", "100")
                                .withParameter("instance_wise_delay_multiplier", "4"))
                .delays();

        assertThat(delays.executionNanos(0)).isEqualTo(100_000_000);
        assertThat(delays.executionNanos(1)).isEqualTo(400_000_000);
        assertThat(delays.executionNanos(2)).isEqualTo(800_000_000);
        assertThat(new IdentityDelays(Long.MAX_VALUE, Long.MAX_VALUE, 0).executionNanos(2))
                .isEqualTo(Long.MAX_VALUE);
        assertThat(new IdentityDelays(7, 0, 0).executionNanos(2)).isEqualTo(7);
    }

    @Test
    void refusesTensorsThatHaveNoPartner() {
        assertRefused(
                ModelSettings.builder("m", 1).input(spec("image", DataType.FP32)),
                "expected input name to follow INPUT<index> pattern, got 'image'");
        assertRefused(
                ModelSettings.builder("m", 1).input(spec("INPUT0", DataType.FP32)),
                "expected input and output indices to match, got input 'INPUT0' without an output");
        assertRefused(
                ModelSettings.builder("m", 1).output(spec("OUTPUT0", DataType.FP32)),
                "expected input and output indices to match, got output 'OUTPUT0' without an input");
        assertRefused(
                ModelSettings.builder("m", 1).output(spec("image", DataType.FP32)),
                "expected output name to follow OUTPUT<index> pattern, got 'image'");
        assertRefused(
                ModelSettings.builder("m", 1)
                        .input(spec("INPUT0", DataType.FP32))
                        .output(spec("OUTPUT0", DataType.FP16)),
                "expected input and output datatype to match, got FP32 and FP16 ('INPUT0', 'OUTPUT0')");
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertThatThrownBy(() -> IdentityModel.of(context(settings.build())))
                .isInstanceOf(BackendException.class)
                .hasMessage(message);
    }

    private static FakeModelContext context(ModelSettings settings) {
        return new FakeModelContext(settings, Path.of("m"));
    }

    private static TensorSpec spec(String name, DataType type) {
        return TensorSpec.of(name, type, Shape.of(Shape.VARIABLE));
    }
}
