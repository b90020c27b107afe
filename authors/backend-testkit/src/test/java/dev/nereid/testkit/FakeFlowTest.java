package dev.nereid.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A flow that a test opens and closes. */
class FakeFlowTest {
    private final FakeFlow flow = new FakeFlow();
    private final List<String> ran = new ArrayList<>();

    @Test
    void runsAnActionWhenItOpens() {
        assertThat(flow.isOpen()).isTrue();
        flow.whenOpen(() -> ran.add("a"));
        flow.close();
        flow.whenOpen(() -> ran.add("b"));
        assertThat(flow.isOpen()).isFalse();
        assertThat(flow.isAwaited()).isTrue();
        assertThat(ran).containsExactly("a");

        flow.open();

        assertThat(ran).containsExactly("a", "b");
        assertThat(flow.isAwaited()).isFalse();
    }
}
