package dev.nereid.examples.iterativesequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the backend behind the schedulers of a server, with the models of the reference server's suite. */
final class IterativeSequenceServerTest {
    private static final String ITERATIVE = "sequence_batching { iterative_sequence: true }";

    private static LocalServer start(boolean decoupled, String scheduling) {
        return LocalServer.with(new IterativeSequenceBackendProvider())
                .model("iterative_sequence", """
                    backend: "iterative_sequence"
                    max_batch_size: 1
                    input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
                    output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
                    model_transaction_policy { decoupled: %b }
                    instance_group [ { kind: KIND_CPU } ]
                    parameters [ { key: "execute_delay_ms" value: { string_value: "0" } } ]
                    %s
                    """.formatted(decoupled, scheduling))
                .start();
    }

    private static ModelRequest number(LocalServer server, int number) {
        return server.client().request("iterative_sequence").input("INPUT", Shape.of(1, 1), number);
    }

    private static List<Integer> outputs(ReceivedResponses received) {
        return received.all().stream()
                .map(response -> response.requireOutput("OUTPUT").ints()[0])
                .toList();
    }

    @Test
    void countsDownOneResponseInEachExecution() {
        try (LocalServer server = start(true, ITERATIVE)) {
            assertThat(outputs(server.send(number(server, 5)))).containsExactly(4, 3, 2, 1, 0);
            assertThat(outputs(server.send(number(server, 1)))).containsExactly(0);
        }
    }

    @Test
    void executesTheRequestsOfABacklog() {
        try (LocalServer server = start(true, """
                sequence_batching { iterative_sequence: true max_sequence_idle_microseconds: 8000000
                  direct { max_queue_delay_microseconds: 10000000 } }""")) {
            List<ReceivedResponses> requests = Stream.of(2, 2, 2, 2)
                    .map(number -> server.send(number(server, number)))
                    .toList();

            assertThat(requests)
                    .allSatisfy(request -> assertThat(outputs(request)).containsExactly(1, 0));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"direct { }", "oldest { }"})
    void sequencesThatAreNotIterativeEndAfterOneExecution(String strategy) {
        try (LocalServer server = start(true, "sequence_batching { iterative_sequence: false " + strategy + " }")) {
            var error = server.send(number(server, 2).sequence(Sequence.of(1, true, false)))
                    .error();

            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error.getMessage())
                    .startsWith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is"
                            + " not configured to handle such a flag.");
            assertThat(outputs(server.send(number(server, 1).sequence(Sequence.of(1, false, true)))))
                    .containsExactly(0);
        }
    }

    @Test
    void theDynamicBatcherExecutesOnce() {
        try (LocalServer server = start(true, "dynamic_batching { }")) {
            assertThat(server.send(number(server, 2)).error().getMessage())
                    .startsWith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE");
        }
    }

    @Test
    void aModelThatIsNotDecoupledRespondsAtTheEnd() {
        try (LocalServer server = start(false, ITERATIVE)) {
            assertThat(outputs(server.send(number(server, 3)))).containsExactly(0);
        }
    }

    @Test
    void aCancelledRequestLeavesNothing() {
        try (LocalServer server = start(true, ITERATIVE)) {
            var endless = number(server, Integer.MAX_VALUE);
            var received = server.send(endless);
            received.await(2);
            endless.cancel();

            assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(outputs(server.send(number(server, 2)))).containsExactly(1, 0);
        }
    }
}
