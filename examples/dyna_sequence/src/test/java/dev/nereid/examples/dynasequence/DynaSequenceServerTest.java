package dev.nereid.examples.dynasequence;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
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

    private static LocalRequest numbers(int... numbers) {
        return LocalRequest.request().input("INPUT", numbers);
    }

    @Test
    void addsUpForEachText() {
        assertThat(server.infer("sums", numbers(1, 1).sequence("1001", true, false))
                        .ints("OUTPUT"))
                .containsExactly(2, 2);
        assertThat(server.infer("sums", numbers(5).sequence("1002", true, false))
                        .ints("OUTPUT"))
                .containsExactly(5);
        assertThat(server.infer("sums", numbers(3).sequence("1001", false, true))
                        .ints("OUTPUT"))
                .containsExactly(5 + 1001);
    }

    @Test
    void refusesTextsThatAreNoNumbers() {
        var error = server.send("sums", numbers(1).sequence("a", true, false)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.publicMessage())
                .startsWith("dyna sequence backend expects correlation ID to be decodable into an integer");
    }
}
