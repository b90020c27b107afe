package dev.nereid.examples.implicitstate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.server.LocalRequest;
import dev.nereid.testkit.server.LocalServer;
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
        InferenceException error = server.send(
                        "no_implicit_state", request(0, 4).sequence(1, true, false))
                .error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.publicMessage())
                .isEqualTo("unable to add state 'undefined_state'. State configuration is missing for model"
                        + " 'no_implicit_state'.");
    }

    @Test
    void aNameThatIsNotConfiguredIsNoState() {
        InferenceException error = server.send(
                        "wrong_internal_state", request(0, 4).sequence(2, true, false))
                .error();

        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(error.publicMessage())
                .isEqualTo("state 'undefined_state' is not a valid state name. (expected: one of [OUTPUT_STATE])");
    }

    @Test
    void inputAndOutputStateHaveOneBuffer() {
        assertThat(server.infer("single_state_buffer", request(2, 4).sequence(2, true, false))
                        .names())
                .isEmpty();
        assertThat(server.infer("single_state_buffer", request(2, 4).sequence(2, false, true))
                        .names())
                .isEmpty();
    }

    @Test
    void aStateWithoutANewValueStays() {
        assertThat(output(request(1, 1).sequence(3, true, false))).isEqualTo(1);
        for (int i = 0; i < 10; i++) {
            assertThat(output(request(1, 1).sequence(3, false, false))).isEqualTo(1);
        }
        assertThat(output(request(1, 1).sequence(3, false, true))).isEqualTo(1);
    }

    private int output(LocalRequest request) {
        return server.infer("no_state_update", request).ints("OUTPUT")[0];
    }

    private static LocalRequest request(int testCase, int number) {
        return LocalRequest.request().input("INPUT", number).input("TEST_CASE", testCase);
    }
}
