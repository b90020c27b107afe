package dev.nereid.benchmarks.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class TableTest {
    private final Table table = new Table("Title", "WHAT", "RATE");

    @Test
    void setsTheFirstColumnLeftAndTheOthersRight() {
        table.add("server", "1/s");
        table.add("  echo", "1,000/s");
        table.addFootnote("a note");

        assertThat(table.text()).isEqualTo("""
                Title
                WHAT       RATE
                server      1/s
                  echo  1,000/s
                a note
                """);
    }

    @Test
    void keepsTheIndentOfCeilingsInMarkdown() {
        table.add("server", "1/s");
        table.add("  echo", "1,000/s");

        assertThat(table.markdown()).isEqualTo("""
                ## Title

                | WHAT | RATE |
                | --- | ---: |
                | server | 1/s |
                | &nbsp;&nbsp;echo | 1,000/s |

                """);
    }

    @Test
    void consistsOfItsFootnoteWhenNothingWasMeasured() {
        table.addFootnote("left out: no model");

        assertThat(table.markdown()).isEqualTo("## Title\n\nleft out: no model\n\n");
    }

    @Test
    void refusesARowOfAnotherWidth() {
        assertThatThrownBy(() -> table.add("server")).hasMessage("cells: 1 (expected: 2)");
    }
}
