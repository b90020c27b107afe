package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.server.options.RateLimitOptions;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The rate limiter of a server. */
@Timeout(60)
final class RateLimitTest {
    private static final int EACH = 80;

    private final GatedBackend backend = new GatedBackend();

    /**
     * The shares of the reference server's own test: of two models that cannot execute at the same time, each with
     * eight requests in flight, the one of priority 1 completes more than 1.8 times as many.
     */
    @Test
    void givesTheHigherPriorityTwiceTheExecutions() throws InterruptedException {
        GatedBackend.Gate gate = backend.close("holder");
        try (LocalServer server = LocalServer.with(backend)
                .model("first", exclusive(1))
                .model("second", exclusive(2))
                .model("holder", exclusive(1))
                .options(options -> options.rateLimit = Optional.of(new RateLimitOptions(List.of())))
                .start()) {
            List<ReceivedResponses> responses = new ArrayList<>();
            responses.add(send(server, "holder"));
            gate.awaitExecution();
            for (int i = 0; i < EACH; i++) {
                responses.add(send(server, "second"));
                responses.add(send(server, "first"));
            }
            assertThat(pending(server, "first")).isEqualTo(EACH);
            assertThat(pending(server, "second")).isEqualTo(EACH);

            gate.open();

            for (ReceivedResponses response : responses) {
                assertThat(response.one().requireOutput("OUTPUT0").floats()).containsExactly(1, 2);
            }
        }
        // A client of the first model that sends its last request at the 72nd response ends its test there; a client of
        // the second model has sent eight more requests than it has responses.
        List<String> executions = backend.executed();
        int inFlight = 8;
        int sent = 0;
        int sentOfSecond = inFlight;
        for (int i = 0; sent < EACH - inFlight; i++) {
            switch (executions.get(i)) {
                case "first" -> sent++;
                case "second" -> sentOfSecond++;
                default -> assertThat(i).as("the holder goes first").isZero();
            }
        }
        assertThat(EACH / (double) sentOfSecond).isGreaterThan(1.8).isLessThanOrEqualTo(2);
    }

    private static String exclusive(int priority) {
        return GatedBackend.tensors(4, "FP32", "[ -1 ]")
                + "instance_group { count: 1 kind: KIND_CPU rate_limiter {"
                + " resources { name: \"R\" count: 1 } priority: " + priority + " } }";
    }

    private static ReceivedResponses send(LocalServer server, String model) {
        return server.send(server.client().request(model).input("INPUT0", Shape.of(1, 2), 1f, 2f));
    }

    private static int pending(LocalServer server, String model) {
        return server.server()
                .models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .metrics()
                .pending();
    }
}
