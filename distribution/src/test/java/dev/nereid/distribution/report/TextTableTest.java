package dev.nereid.distribution.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class TextTableTest {
    @Test
    void makesColumnsAsWideAsTheirWidestCell() {
        TextTable table = new TextTable("MODEL", "STATE", "REASON");
        table.add("a-long-name", "READY", "");
        table.add("b", "UNAVAILABLE", "two\nlines");

        assertThat(table.toString()).isEqualTo("""
                MODEL        STATE        REASON
                a-long-name  READY
                b            UNAVAILABLE  two lines
                """);
    }

    @Test
    void refusesRowsOfAnotherLength() {
        TextTable table = new TextTable("MODEL");

        assertThatThrownBy(() -> table.add("a", "b")).hasMessage("cells: 2 (expected: 1)");
    }
}
