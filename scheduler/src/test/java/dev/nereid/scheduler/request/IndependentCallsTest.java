package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class IndependentCallsTest {
    @Test
    void callsTheActionForAllAlthoughSomeFail() {
        List<Integer> called = new ArrayList<>();

        assertThatThrownBy(() -> IndependentCalls.forEach(List.of(1, 2, 3, 4, 5), number -> {
                    called.add(number);
                    if (number % 2 == 0) {
                        throw new StackOverflowError("at " + number);
                    }
                }))
                .hasMessage("at 4");

        assertThat(called).containsExactly(1, 2, 3, 4, 5);
    }
}
