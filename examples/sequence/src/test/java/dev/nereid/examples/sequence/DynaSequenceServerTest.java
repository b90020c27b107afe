package dev.nereid.examples.sequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests the backend behind the sequence batcher of a server, with ids that are texts. */
final class DynaSequenceServerTest {
    private static final String MODEL = """
            max_batch_size: 8
            sequence_batching {
              max_sequence_idle_microseconds: 60000000
              oldest { max_candidate_sequences: 6 preferred_batch_size: [ 4 ] }
              control_input [
                { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
                { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
                { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
                { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] }
              ]
            }
            input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
            output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
            """;

    @AutoClose
    private final LocalServer server = LocalServer.with(new DynaSequenceBackendProvider())
            .model("sums", MODEL)
            .start();

    private ReceivedResponses send(Sequence sequence, int... numbers) {
        var request = server.client().request("sums").input("INPUT", Shape.of(1, numbers.length), numbers);
        return server.send(request.sequence(sequence));
    }

    private int[] sums(Sequence sequence, int... numbers) {
        return send(sequence, numbers).one().requireOutput("OUTPUT").ints();
    }

    @Test
    void addsUpForEachText() {
        assertThat(sums(Sequence.of("1001", true, false), 1, 1)).containsExactly(2, 2);
        assertThat(sums(Sequence.of("1002", true, false), 5)).containsExactly(5);
        assertThat(sums(Sequence.of("1001", false, true), 3)).containsExactly(5 + 1001);
    }

    @Test
    void refusesTextsThatAreNoNumbers() {
        var error = send(Sequence.of("a", true, false), 1).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.getMessage())
                .startsWith("dyna sequence backend expects correlation ID to be decodable into an integer");
    }
}
