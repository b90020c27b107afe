package dev.nereid.examples.iterativesequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.server.LocalOutputs;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.PendingRequest;
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

    private static LocalRequest number(int number) {
        return LocalRequest.request().input("INPUT", number);
    }

    private static int output(LocalOutputs outputs) {
        return outputs.ints("OUTPUT")[0];
    }

    @Test
    void countsDownOneResponseInEachExecution() {
        try (LocalServer server = start(true, ITERATIVE)) {
            assertThat(server.inferAll("iterative_sequence", number(5)))
                    .extracting(IterativeSequenceServerTest::output)
                    .containsExactly(4, 3, 2, 1, 0);
            assertThat(server.inferAll("iterative_sequence", number(1)))
                    .extracting(IterativeSequenceServerTest::output)
                    .containsExactly(0);
        }
    }

    @Test
    void executesTheRequestsOfABacklog() {
        try (LocalServer server = start(true, """
                sequence_batching { iterative_sequence: true max_sequence_idle_microseconds: 8000000
                  direct { max_queue_delay_microseconds: 10000000 } }""")) {
            List<PendingRequest> requests = Stream.of(2, 2, 2, 2)
                    .map(number -> server.send("iterative_sequence", number(number)))
                    .toList();

            assertThat(requests)
                    .allSatisfy(request -> assertThat(request.responses())
                            .extracting(IterativeSequenceServerTest::output)
                            .containsExactly(1, 0));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"direct { }", "oldest { }"})
    void sequencesThatAreNotIterativeEndAfterOneExecution(String strategy) {
        try (LocalServer server = start(true, "sequence_batching { iterative_sequence: false " + strategy + " }")) {
            InferenceException error = server.send(
                            "iterative_sequence", number(2).sequence(1, true, false))
                    .error();

            assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(error.publicMessage())
                    .startsWith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is"
                            + " not configured to handle such a flag.");
            assertThat(server.inferAll("iterative_sequence", number(1).sequence(1, false, true)))
                    .extracting(IterativeSequenceServerTest::output)
                    .containsExactly(0);
        }
    }

    @Test
    void theDynamicBatcherExecutesOnce() {
        try (LocalServer server = start(true, "dynamic_batching { }")) {
            assertThat(server.send("iterative_sequence", number(2)).error().publicMessage())
                    .startsWith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE");
        }
    }

    @Test
    void aModelThatIsNotDecoupledRespondsAtTheEnd() {
        try (LocalServer server = start(false, ITERATIVE)) {
            assertThat(output(server.infer("iterative_sequence", number(3)))).isZero();
        }
    }

    @Test
    void aCancelledRequestLeavesNothing() {
        try (LocalServer server = start(true, ITERATIVE)) {
            PendingRequest endless = server.send("iterative_sequence", number(Integer.MAX_VALUE));
            endless.awaitResponses(2);
            endless.cancel();

            assertThat(endless.error().code()).isEqualTo(ErrorCode.CANCELLED);
            assertThat(server.inferAll("iterative_sequence", number(2)))
                    .extracting(IterativeSequenceServerTest::output)
                    .containsExactly(1, 0);
        }
    }
}
