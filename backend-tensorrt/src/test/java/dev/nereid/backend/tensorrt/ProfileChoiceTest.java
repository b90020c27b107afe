package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static dev.nereid.backend.tensorrt.EngineTensors.shapeTensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class ProfileChoiceTest {
    /** Up to 4 items, 5 to 64 with 64 as the optimum, and up to 64 with 8 as the optimum. */
    private static final EngineTensor IN = input(
            "IN",
            Shape.of(-1, 3),
            range(Shape.of(1, 3), Shape.of(2, 3), Shape.of(4, 3)),
            range(Shape.of(5, 3), Shape.of(64, 3), Shape.of(64, 3)),
            range(Shape.of(1, 3), Shape.of(8, 3), Shape.of(64, 3)));

    @Test
    void isTheNearestOfThoseThatAllowTheShapes() {
        ProfileChoice all = new ProfileChoice(List.of(IN), List.of(0, 1, 2));

        assertThat(all.choose(Map.of("IN", Shape.of(1, 3)))).isZero();
        assertThat(all.choose(Map.of("IN", Shape.of(4, 3)))).isZero();
        assertThat(all.choose(Map.of("IN", Shape.of(5, 3)))).isEqualTo(2);
        assertThat(all.choose(Map.of("IN", Shape.of(60, 3)))).isEqualTo(1);
        assertThat(new ProfileChoice(List.of(IN), List.of(2, 0)).choose(Map.of("IN", Shape.of(2, 3))))
                .as("an index in the instance's list")
                .isEqualTo(1);
    }

    @Test
    void namesTheLimitsIfThereIsNone() {
        ProfileChoice some = new ProfileChoice(List.of(IN), List.of(0, 1));

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> some.choose(Map.of("IN", Shape.of(65, 3))))
                .withMessage(
                        "no optimization profile of the instance allows the inputs: 'IN' [65,3] (expected: [1,3] to"
                                + " [4,3] or [5,3] to [64,3])")
                .matches(e -> e.code() == ErrorCode.INVALID_ARGUMENT);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> some.choose(Map.of("IN", Shape.of(1, 3, 1))));
    }

    @Test
    void limitsTheValuesOfShapeTensors() {
        EngineTensor size = shapeTensor("SIZE", Shape.of(2), range(Shape.of(1, 1), Shape.of(8, 8), Shape.of(16, 16)));
        ProfileChoice choice = new ProfileChoice(List.of(size), List.of(0));

        assertThat(choice.choose(Map.of("SIZE", Shape.of(16, 1)))).isZero();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> choice.choose(Map.of("SIZE", Shape.of(17, 1))));
    }

    @Test
    void readsTheConfiguration() {
        assertThat(ProfileChoice.read(List.of(), 3)).containsExactly(0);
        assertThat(ProfileChoice.read(List.of("2", "0"), 3)).containsExactly(2, 0);
        for (String wrong : List.of("3", "-1", "x")) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> ProfileChoice.read(List.of(wrong), 3))
                    .withMessage("profile '" + wrong
                            + "': the engine has 3 optimization profiles (expected: a number from 0 to 2)");
        }
    }
}
