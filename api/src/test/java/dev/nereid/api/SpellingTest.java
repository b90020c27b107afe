package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

final class SpellingTest {
    /** Plugins name their parameters, and directories their models. */
    @Test
    void noNameFailsTheSearch() {
        assertThat(Spelling.closest("word", List.of("", "words"))).contains("words");
        assertThat(Spelling.closest("", List.of("", "a"))).isNotNull();
        assertThat(Spelling.closest("word", Arrays.asList("word", null))).isEmpty();
        assertThat(Spelling.question("x".repeat(100_000), List.of("x"))).isEmpty();
    }
}
