package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Text of clients in error messages. */
class QuotedTest {
    @Test
    void leavesTextOfUpToTheLimitAlone() {
        String longest = "x".repeat(Quoted.MAX_LENGTH);

        assertThat(Quoted.text("a")).isEqualTo("a");
        assertThat(Quoted.text(longest)).isSameAs(longest);
    }

    @Test
    void cutsLongerText() {
        assertThat(Quoted.text("x".repeat(257))).isEqualTo("x".repeat(256) + "…");
    }

    @Test
    void neverCutsASurrogatePair() {
        assertThat(Quoted.text("x".repeat(255) + "😀".repeat(2))).isEqualTo("x".repeat(255) + "…");
    }

    @Test
    void cutsLongShapes() {
        assertThat(Quoted.dims(new long[] {1, -1})).isEqualTo("[1,-1]");
        assertThat(Quoted.dims(new long[255])).hasSize(257).endsWith("…");
    }

    @Test
    void cutsListsAndTheirNames() {
        assertThat(Quoted.names(List.of("a", "b"))).isEqualTo("'a','b'");
        assertThat(Quoted.names(Collections.nCopies(65, "a"))).endsWith("'a',…");
    }

    @Test
    void cutsVersionsAndNamesOfModels() {
        assertThat(ModelRef.latest("m".repeat(300)).toString()).hasSize(256 + 3);
    }

    @Test
    void namesRequests() {
        assertThat(Quoted.requestPrefix("7")).isEqualTo("[request id: 7] ");
        assertThat(Quoted.requestPrefix("")).isEqualTo("[request id: <id_unknown>] ");
        assertThat(Quoted.requestPrefix("x".repeat(Quoted.MAX_LENGTH + 1)))
                .isEqualTo("[request id: " + "x".repeat(Quoted.MAX_LENGTH) + "…] ");
    }
}
