package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ResponseFlow;
import dev.nereid.testkit.FakeFlow;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.Test;

final class ReadyActionTest {
    private final FakeFlow flow = new FakeFlow();
    private final List<String> events = new ArrayList<>();
    private int references;

    private final class Sender implements ReadyAction.Sender {
        @Override
        public boolean isReady() {
            return flow.isOpen();
        }

        @Override
        public boolean isDelivering() {
            return false;
        }

        @Override
        public ResponseFlow flow() {
            return flow;
        }

        @Override
        public boolean tryRetain() {
            references++;
            return true;
        }

        @Override
        public void release() {
            references--;
        }

        @Override
        public void log(String event, Throwable cause) {
            events.add(event);
        }
    }

    @Test
    void theActionOfTheServerRunsHereIfThereIsNoThread() {
        ReadyAction action = new ReadyAction(new Sender(), task -> {
            throw new RejectedExecutionException("for a test");
        });
        flow.close();
        action.set(() -> events.add("backend"));
        action.setServers(() -> events.add("server"));
        assertThat(events).isEmpty();

        flow.open();

        assertThat(events).containsExactly("server", "action of backend not started");
        assertThat(references).as("that of the backend waits").isEqualTo(1);
    }
}
