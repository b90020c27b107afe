package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class StatusTextTest {
    @ParameterizedTest
    @ValueSource(strings = {"a", "%", "é", "€", "😀", "\n"})
    void cutsAtTheEndOfACharacter(String character) {
        String cut = StatusText.cut(character.repeat(100_000));

        assertThat(StatusText.encoded(cut)).hasSizeBetween(StatusText.MAX_ENCODED - 12, StatusText.MAX_ENCODED);
        assertThat(cut).isEqualTo(character.repeat((cut.length() - 1) / character.length()) + "…");
    }

    @Test
    void leavesAloneWhatFits() {
        String text = "a".repeat(StatusText.MAX_ENCODED);
        assertThat(StatusText.cut(text)).isSameAs(text);
        assertThat(StatusText.cut("é".repeat(682))).hasSize(682);
    }

    @Test
    void encodesAsGrpcDoes() {
        assertThat(StatusText.encoded("a %é~\u007F")).isEqualTo("a %25%C3%A9~%7F");
    }
}
