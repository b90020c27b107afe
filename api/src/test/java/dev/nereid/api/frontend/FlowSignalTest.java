package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ResponseFlow;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** The flow of a front end runs one action, once. */
class FlowSignalTest {
    private final AtomicBoolean open = new AtomicBoolean();
    private final FlowSignal flow = new FlowSignal(open::get);
    private final List<String> ran = new ArrayList<>();

    @Test
    void runsAnActionAtOnceIfOpen() {
        open.set(true);

        flow.whenOpen(() -> ran.add("a"));
        flow.check();

        assertThat(ran).containsExactly("a");
        assertThat(flow.isAwaited()).isFalse();
    }

    @Test
    void runsTheLatestActionWhenItOpens() {
        flow.whenOpen(() -> ran.add("a"));
        flow.whenOpen(() -> ran.add("b"));
        flow.check();
        assertThat(ran).isEmpty();
        assertThat(flow.isAwaited()).isTrue();

        open.set(true);
        flow.check();
        flow.check();

        assertThat(ran).containsExactly("b");
    }

    @Test
    void keepsAnActionThatAnActionRegisters() {
        flow.whenOpen(() -> {
            open.set(false);
            flow.whenOpen(() -> ran.add("next"));
        });
        open.set(true);
        flow.check();
        assertThat(ran).isEmpty();

        open.set(true);
        flow.check();

        assertThat(ran).containsExactly("next");
    }

    @Test
    void isAlwaysOpenForReceiversWithoutALimit() {
        ResponseFlow.OPEN.whenOpen(() -> ran.add("a"));

        assertThat(ResponseFlow.OPEN.isOpen()).isTrue();
        assertThat(ran).containsExactly("a");
    }
}
