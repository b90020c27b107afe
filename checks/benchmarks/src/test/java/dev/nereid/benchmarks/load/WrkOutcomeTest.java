package dev.nereid.benchmarks.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import org.junit.jupiter.api.Test;

final class WrkOutcomeTest {
    @Test
    void readsFiguresFromTheLineOfTheScript() throws IOException {
        String output = "Running 10s test\n  8 threads\noutcome 5000 2000000 310 4200 0 0 0 0 0\n";

        Sample sample = WrkOutcome.in(output).sample("echo");

        assertThat(sample).isEqualTo(new Sample(2_500, 310, 4_200));
    }

    @Test
    void refusesFiguresWithErrorResponses() throws IOException {
        WrkOutcome outcome = WrkOutcome.in("outcome 5000 2000000 310 4200 3 0 0 0 0");

        assertThatThrownBy(() -> outcome.sample("echo"))
                .isInstanceOf(IOException.class)
                .hasMessage("echo: of 5000 requests 3 failed, and 0 connections or responses broke"
                        + " (expected: none of either)");
    }

    @Test
    void refusesFiguresWithBrokenConnectionsInThem() throws IOException {
        WrkOutcome outcome = WrkOutcome.in("outcome 5000 2000000 310 4200 0 1 2 3 4");

        assertThatThrownBy(() -> outcome.sample("echo")).hasMessageContaining("and 10 connections or responses broke");
    }

    @Test
    void refusesARunWithoutResponses() throws IOException {
        WrkOutcome outcome = WrkOutcome.in("outcome 0 2000000 0 0 0 0 0 0 0");

        assertThatThrownBy(() -> outcome.sample("echo")).hasMessageContaining("of 0 requests");
    }

    @Test
    void showsTheOutputOfWrkWithoutAnOutcome() {
        assertThatThrownBy(() -> WrkOutcome.in("unable to connect\n"))
                .isInstanceOf(IOException.class)
                .hasMessage("wrk printed no outcome: unable to connect");
    }
}
