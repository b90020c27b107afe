package dev.nereid.examples.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import org.junit.jupiter.api.Test;

/** Tests the backend behind the sequence batcher of a server. */
final class SequenceServerTest {
    private static final String CONFIG = """
            max_batch_size: 4
            input { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] }
            output { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] }
            sequence_batching {
              max_sequence_idle_microseconds: 60000000
              direct { }
              control_input { name: "START"
                control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
              control_input { name: "READY"
                control { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } }
            }
            """;

    @Test
    void keepsASumForEachSequence() {
        try (LocalServer server = LocalServer.with(new SequenceBackendProvider())
                .model("sums", CONFIG)
                .start()) {
            assertThat(sum(server, 1, 1, Sequence.of(1, true, false))).isEqualTo(1);
            assertThat(sum(server, 2, 10, Sequence.of(2, true, false))).isEqualTo(10);
            assertThat(sum(server, 3, 2, Sequence.of(1, false, false))).isEqualTo(3);
            assertThat(sum(server, 4, 20, Sequence.of(2, false, true))).isEqualTo(30);
            assertThat(sum(server, 5, 3, Sequence.of(1, false, true))).isEqualTo(6);
        }
    }

    private static int sum(LocalServer server, int id, int number, Sequence sequence) {
        var request = server.client().request("sums").input("INPUT", Shape.of(1, 1), number);
        var response =
                server.send(request.id("request " + id).sequence(sequence)).one();
        assertThat(response.id()).isEqualTo("request " + id);
        return response.requireOutput("OUTPUT").ints()[0];
    }
}
