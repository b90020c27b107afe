package dev.nereid.examples.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.testkit.server.LocalRequest;
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
            assertThat(sum(server, 1, number(1).sequence(1, true, false))).isEqualTo(1);
            assertThat(sum(server, 2, number(10).sequence(2, true, false))).isEqualTo(10);
            assertThat(sum(server, 3, number(2).sequence(1, false, false))).isEqualTo(3);
            assertThat(sum(server, 4, number(20).sequence(2, false, true))).isEqualTo(30);
            assertThat(sum(server, 5, number(3).sequence(1, false, true))).isEqualTo(6);
        }
    }

    private static LocalRequest number(int number) {
        return LocalRequest.request().input("INPUT", number);
    }

    private static int sum(LocalServer server, int id, LocalRequest request) {
        var outputs = server.infer("sums", request.id("request " + id));
        assertThat(outputs.id()).isEqualTo("request " + id);
        return outputs.ints("OUTPUT")[0];
    }
}
