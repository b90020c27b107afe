package dev.nereid.examples.implicitstate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests states that a server keeps, with the models of the reference server's suite. */
final class ImplicitStateServerTest {
    private static final String MODEL = """
            backend: "implicit_state"
            max_batch_size: 0
            input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 1 ] },
                    { name: "TEST_CASE" data_type: TYPE_INT32 dims: [ 1 ] } ]
            output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
            instance_group [ { count: 1 kind : KIND_CPU } ]
            sequence_batching {
              max_sequence_idle_microseconds: 60000000
              control_input [
                { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
                { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } ] },
                { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] }
              ]
              %s
            }
            """;

    private static final String STATE =
            "state [ { input_name: \"INPUT_STATE\" output_name: \"OUTPUT_STATE\" data_type: TYPE_INT32 dims: 1 %s } ]";

    @AutoClose
    private final LocalServer server = LocalServer.with(new ImplicitStateBackendProvider())
            .withWrongOutputs() // some models answer without outputs
            .model("no_implicit_state", MODEL.formatted(""))
            .model("wrong_internal_state", MODEL.formatted(STATE.formatted("")))
            .model("single_state_buffer", MODEL.formatted(STATE.formatted("use_same_buffer_for_input_output: true")))
            .model("no_state_update", MODEL.formatted(STATE.formatted("""
                    initial_state: { name: "state init" data_type: TYPE_INT32 dims: 1 zero_data: true }""")))
            .start();

    @Test
    void aModelWithoutStatesHasNone() {
        var error = send("no_implicit_state", 0, 4, Sequence.of(1, true, false)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.getMessage())
                .isEqualTo("unable to add state 'undefined_state'. State configuration is missing for model"
                        + " 'no_implicit_state'.");
    }

    @Test
    void aNameThatIsNotConfiguredIsNoState() {
        var error =
                send("wrong_internal_state", 0, 4, Sequence.of(2, true, false)).error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.getMessage())
                .isEqualTo("state 'undefined_state' is not a valid state name. (expected: one of [OUTPUT_STATE])");
    }

    @Test
    void inputAndOutputStateHaveOneBuffer() {
        var first = send("single_state_buffer", 2, 4, Sequence.of(2, true, false));
        assertThat(first.one().outputs()).isEmpty();
        var last = send("single_state_buffer", 2, 4, Sequence.of(2, false, true));
        assertThat(last.one().outputs()).isEmpty();
    }

    @Test
    void aStateWithoutANewValueStays() {
        assertThat(output(Sequence.of(3, true, false))).isEqualTo(1);
        for (int i = 0; i < 10; i++) {
            assertThat(output(Sequence.of(3, false, false))).isEqualTo(1);
        }
        assertThat(output(Sequence.of(3, false, true))).isEqualTo(1);
    }

    private int output(Sequence sequence) {
        var response = send("no_state_update", 1, 1, sequence).one();
        return response.requireOutput("OUTPUT").ints()[0];
    }

    private ReceivedResponses send(String model, int testCase, int number, Sequence sequence) {
        var request = server.client().request(model).input("INPUT", Shape.of(1), number);
        return server.send(request.input("TEST_CASE", Shape.of(1), testCase).sequence(sequence));
    }
}
