package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which names denote an argument, an index, or nothing but their place. */
class NamingConventionTest {
    private static final List<String> ARGUMENTS = List.of("a", "b", "c__7");

    @ParameterizedTest
    @CsvSource({
        "x__0, 0",
        "x__, 0",
        "__, 0",
        "__3, 3",
        "x__12, 12",
        "x__007, 7",
        "x__00000000000000000001, 1",
        "x_y__2, 2",
        "x__999999999, 999999999",
        "x__1000000000, 2147483647",
        "x__99999999999999999999999999, 2147483647",
        "größe__1, 1"
    })
    void index(String name, int index) {
        assertThat(NamingConvention.index(name)).hasValue(index);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", "x", "x_0", "a__b__0", "x___0", "x__0 ", "x__ 0", "x__-1", "x__+1", "x__1.0", "x__0x1", "x__١",
                "x__1\n", "x__1__", "_"
            })
    void noIndex(String name) {
        assertThat(NamingConvention.index(name)).isEmpty();
    }

    @Test
    void longNames() {
        assertThat(NamingConvention.index("x".repeat(1_000_000) + "__1")).hasValue(1);
        assertThat(NamingConvention.index("x__" + "1".repeat(1_000_000))).hasValue(Integer.MAX_VALUE);
        assertThat(NamingConvention.index("_x".repeat(1_000_000))).isEmpty();
    }

    @Test
    void argumentsFirst() {
        assertThat(NamingConvention.of(List.of("b", "a"), ARGUMENTS)).isEqualTo(NamingConvention.ARGUMENT);
        assertThat(NamingConvention.of(List.of("c__7"), ARGUMENTS)).isEqualTo(NamingConvention.ARGUMENT);
    }

    @Test
    void thenIndices() {
        assertThat(NamingConvention.of(List.of("c__7", "x__0"), ARGUMENTS)).isEqualTo(NamingConvention.INDEX);
        assertThat(NamingConvention.of(List.of("x__0", "y__"), List.of())).isEqualTo(NamingConvention.INDEX);
    }

    @Test
    void orElseTheOrder() {
        assertThat(NamingConvention.of(List.of("a", "x__0"), ARGUMENTS)).isEqualTo(NamingConvention.ORDER);
        assertThat(NamingConvention.of(List.of("A", "b"), ARGUMENTS)).isEqualTo(NamingConvention.ORDER);
        assertThat(NamingConvention.of(List.of("x"), List.of())).isEqualTo(NamingConvention.ORDER);
    }
}
