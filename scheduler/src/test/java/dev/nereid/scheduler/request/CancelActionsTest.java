package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class CancelActionsTest {
    /** The canceling thread may be an event loop: requests that an action sends must not wait on it. */
    @Test
    void runsActionsAsCallsOfObservers() {
        CancelActions actions = new CancelActions();
        List<Boolean> inScope = new ArrayList<>();
        var _ = actions.add(() -> inScope.add(ObserverScope.current().isOpen()));

        actions.cancel();

        assertThat(inScope).containsExactly(true);
        assertThat(ObserverScope.current().isOpen()).isFalse();
    }
}
