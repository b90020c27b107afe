package dev.nereid.backend.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Parameters;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OptionValuesTest {
    private static OptionValues values(String value) {
        return new OptionValues(Parameters.of(Map.of("option", value)));
    }

    @ParameterizedTest
    @CsvSource({"4, 4", "' 4', 4", "-1, -1", "+7, 7", "4 threads, 4", "2147483647, 2147483647"})
    void readsTheNumberAtTheBeginning(String value, int number) {
        assertThat(values(value).number("option")).hasValue(number);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "many", "2147483648", "- 1"})
    void refusesWhatIsNoNumber(String value) {
        assertThatThrownBy(() -> values(value).number("option"))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageStartingWith("failed to convert '" + value + "' to integral number; ")
                .hasMessageEndingWith("(expected: a whole number)");
    }

    @ParameterizedTest
    @CsvSource({"1, true", "True, true", "ON, true", "0, false", "false, false", "off, false"})
    void readsTheWordsOfTheReferenceServer(String value, boolean truth) {
        assertThat(values(value).truth("option")).contains(truth);
    }

    @Test
    void refusesOtherWords() {
        assertThatThrownBy(() -> values("yes").truth("option"))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("failed to convert 'yes' to boolean; ")
                .hasMessageContaining("'option'")
                .hasMessageEndingWith("(expected: true or false)");
    }

    @Test
    void hasNothingForAnOptionThatIsNotGiven() {
        assertThat(values("1").number("other")).isEmpty();
        assertThat(values("1").truth("other")).isEmpty();
    }
}
