package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Configurations that models complete. */
class CompletionIT {
    private static final String TENSORS =
            "input [{ name: \"IN\" data_type: TYPE_FP32 dims: [ 4 ] }] output [{ name: \"OUT\" data_type: TYPE_FP32 dims: [ 4 ] }] ";

    private static final String ADD_TENSORS = """
            c.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
            c.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
            """;

    @TempDir
    Path directory;

    /** A model with a body of {@code auto_complete_config}, in which {@code c} is the configuration. */
    private static String completing(String body) {
        return """
                import os, sys
                import triton_python_backend_utils as pb
                print("IMPORTED", os.getpid())
                class TritonPythonModel:
                    @staticmethod
                    def auto_complete_config(c):
                %s
                    def initialize(self, args):
                        print("INITIALIZED", args["model_instance_name"], os.getpid())
                    def execute(self, requests):
                        return []
                """.formatted(body.indent(8));
    }

    static Stream<Arguments> refused() {
        String of = " in auto-complete-config function for model 'm' ";
        return Stream.of(
                Arguments.of(
                        TENSORS + "max_batch_size: 8",
                        "c.set_max_batch_size(4)",
                        "configuration specified max_batch_size 8, but in auto-complete-config function for model 'm'"
                                + " specified max_batch_size 4"),
                Arguments.of(
                        TENSORS + "sequence_batching { }",
                        "c.set_dynamic_batching()",
                        "Configuration specified scheduling_choice as 'sequence_batching', but auto-complete-config"
                                + " function for model 'm' tries to set scheduling_choice as 'dynamic_batching'"),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [4], 'is_shape_tensor:': True})",
                        "input 'IN'" + of + "contains property other than 'name', 'data_type', 'dims' and 'optional'."),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'data_type': 'TYPE_FP32', 'dims': [4]})",
                        "input" + of + "is missing 'name' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'dims': [4]})",
                        "input 'IN'" + of + "is missing 'data_type' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32'})",
                        "input 'IN'" + of + "is missing 'dims' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': [4], 'optional': True})",
                        "output 'OUT'" + of + "contains property other than 'name', 'data_type' and 'dims'."),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'data_type': 'TYPE_FP32', 'dims': [4]})",
                        "output" + of + "is missing 'name' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'name': 'OUT', 'dims': [4]})",
                        "output 'OUT'" + of + "is missing 'data_type' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32'})",
                        "output 'OUT'" + of + "is missing 'dims' property."),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_INT32', 'dims': [4]})",
                        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'IN', model"
                                + " provides TYPE_INT32"),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'name': 'OUT', 'data_type': 'TYPE_INT32', 'dims': [4]})",
                        "unable to load model 'm', configuration expects datatype TYPE_FP32 for output 'OUT', model"
                                + " provides TYPE_INT32"),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [16]})",
                        "model 'm', tensor 'IN': the model expects dims [16] but the model configuration specifies"
                                + " dims [4]"),
                Arguments.of(
                        TENSORS,
                        "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': [16]})",
                        "model 'm', tensor 'OUT': the model expects dims [16] but the model configuration specifies"
                                + " dims [4]"),
                Arguments.of(
                        TENSORS,
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [4], 'optional': True})",
                        "model 'm', tensor 'IN': the model expects optional True but the model configuration"
                                + " specifies optional False"),
                Arguments.of(
                        TENSORS,
                        "c.set_model_transaction_policy({'invalid': True})",
                        "model transaction property in auto-complete-config function for model 'm' contains property"
                                + " other than 'decoupled'."),
                Arguments.of(
                        TENSORS + "model_transaction_policy { decoupled: true }",
                        "c.set_model_transaction_policy({'decoupled': False})",
                        "trying to change decoupled property in auto-complete-config for model 'm', which is already"
                                + " set to 'True'."));
    }

    @ParameterizedTest(name = "{1}")
    @MethodSource("refused")
    void refuses(String config, String body, String text) throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", config, completing(body + "\nreturn c")).start();

            assertThat(server.failureText("m"))
                    .contains("Internal: ValueError: " + text + "\n\nAt:\n")
                    .contains("model.py(")
                    .contains("auto_complete_config");
            server.log().await("Failed to initialize Python stub for auto-complete: ");
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            return None | auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.
            return c.as_dict() | auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.
            raise NameError("not now") | NameError: not now
            sys.exit(7) | SystemExit: 7
            os._exit(7) | Stub process 'm_0' is not healthy.
            """)
    void refusesOtherResults(String body, String text) throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", TENSORS, completing(body)).start();

            assertThat(server.failureText("m")).contains(text);
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    static Stream<Arguments> completed() {
        String tensors = "IN:TYPE_FP32:[\"4\"] OUT:TYPE_FP32:[\"4\"]";
        return Stream.of(
                Arguments.of("", ADD_TENSORS, tensors, "\"max_batch_size\":0"),
                Arguments.of("", ADD_TENSORS + "c.set_max_batch_size(4)", tensors, "\"max_batch_size\":4"),
                Arguments.of(
                        "max_batch_size: 4",
                        ADD_TENSORS + "c.set_max_batch_size(4)\nc.set_dynamic_batching()",
                        tensors,
                        "\"dynamic_batching\":{"),
                Arguments.of(
                        TENSORS + "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 7 }",
                        "c.set_dynamic_batching()",
                        tensors,
                        "\"max_queue_delay_microseconds\":7"),
                Arguments.of(
                        "input [{ name: \"IN\" }] output [{ name: \"OUT\" data_type: TYPE_FP32 dims: [ 4 ] }]",
                        ADD_TENSORS,
                        tensors,
                        "\"max_batch_size\":0"),
                Arguments.of(
                        "input [{ name: \"IN\" data_type: TYPE_FP32 }] output [{ name: \"OUT\" dims: [ 4 ] }]",
                        ADD_TENSORS,
                        tensors,
                        "\"max_batch_size\":0"),
                Arguments.of(TENSORS, "pass", tensors, "\"max_batch_size\":0"),
                Arguments.of(
                        TENSORS + "max_batch_size: 4",
                        "c.as_dict()['dynamic_batching'] = {'max_queue_delay_microseconds': 100}",
                        tensors,
                        "\"max_queue_delay_microseconds\":100"),
                Arguments.of(
                        TENSORS + "max_batch_size: 4",
                        "c.as_dict()['sequence_batching'] = {'max_sequence_idle_microseconds': 7, 'oldest': {}}",
                        tensors,
                        "\"max_sequence_idle_microseconds\":7"),
                Arguments.of(TENSORS, ADD_TENSORS, tensors, "\"max_batch_size\":0"),
                Arguments.of(
                        TENSORS,
                        "c.set_model_transaction_policy({'decoupled': True})",
                        tensors,
                        "\"model_transaction_policy\":{\"decoupled\":true}"),
                Arguments.of(
                        TENSORS,
                        "c.set_model_transaction_policy({'decoupled': False})",
                        tensors,
                        "\"model_transaction_policy\":{\"decoupled\":false}"),
                Arguments.of(
                        TENSORS + "model_transaction_policy { decoupled: true }",
                        "c.set_model_transaction_policy({})",
                        tensors,
                        "\"model_transaction_policy\":{\"decoupled\":true}"),
                Arguments.of(
                        "",
                        "c.add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [4], 'optional': True})\n"
                                + "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': [4]})",
                        tensors,
                        "\"optional\":true"),
                Arguments.of(
                        "",
                        "d = c.as_dict()\nd['input'] = [{'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [4]}]\n"
                                + "c.add_output({'name': 'OUT', 'data_type': 'TYPE_FP32', 'dims': (4,)})",
                        tensors,
                        "\"max_batch_size\":0"));
    }

    @ParameterizedTest(name = "{0} {1}")
    @MethodSource("completed")
    void completes(String config, String body, String tensors, String field) throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", config, completing(body + "\nreturn c")).start().load("m");

            var found = server.server().server().models().config(ModelRef.latest("m"));
            String json = server.server().server().models().configJson(ModelRef.latest("m"));
            assertThat(found.toString()).contains("IN").contains("OUT");
            assertThat(json.replace(" ", "")).contains(field);
        }
    }

    @Test
    void asksForOtherModelsBeforeItIsInitialized() throws Exception {
        String body = """
                print("READY", pb.is_model_ready("m"), pb.is_model_ready("other"))
                try:
                    pb.load_model("other")
                except pb.TritonModelException as e:
                    print("REFUSED", e)
                return c
                """;
        try (PythonServer server = new PythonServer(directory)) {
            server.model(
                            "m",
                            TENSORS,
                            "import triton_python_backend_utils as pb\npb.is_model_ready('x')\n" + completing(body))
                    .start()
                    .load("m");

            server.log().await("READY False False");
            server.log().await("REFUSED Failed to load model: ");
        }
    }

    @Test
    void aModelNeedsNoConfiguration() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.file("m/1/model.py", completing(ADD_TENSORS + "return c"))
                    .start()
                    .load("m");

            assertThat(server.server()
                            .server()
                            .models()
                            .configJson(ModelRef.latest("m"))
                            .replace(" ", ""))
                    .contains("\"backend\":\"python\"")
                    .contains("\"platform\":\"\"");
        }
    }

    @Test
    void withoutConfigurationAndCompletionNothingIsKnown() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.file("m/1/model.py", """
                    class TritonPythonModel:
                        def execute(self, requests):
                            return []
                    """).start();

            assertThat(server.failureText("m")).contains("model configuration is not provided for model 'm'");
        }
    }

    @Test
    void theProcessBecomesThatOfTheFirstInstance() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", TENSORS + "instance_group [{ count: 3 kind: KIND_CPU }]", completing("return c"))
                    .start()
                    .load("m");

            String pid = server.log().awaitAfter("INITIALIZED m_0_0 ");
            server.log().await("INITIALIZED m_0_1 ");
            server.log().await("INITIALIZED m_0_2 ");
            assertThat(server.log().lines("IMPORTED ")).hasSize(3);
            assertThat(server.log().lines("IMPORTED ").getFirst()).endsWith("[python m_0_0] IMPORTED " + pid);
            assertThat(PythonServer.processes()).hasSize(3).contains(Long.parseLong(pid));
        }
    }

    @Test
    void withoutCompletionNothingElseIsStarted() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.options(options -> options.autoComplete = false)
                    .model("m", TENSORS, completing("raise ValueError()"))
                    .start()
                    .load("m");

            String pid = server.log().awaitAfter("INITIALIZED m_0 ");
            assertThat(server.log().lines("IMPORTED ")).hasSize(1).allMatch(line -> line.endsWith(" " + pid));
            assertThat(PythonServer.processes()).containsExactly(Long.parseLong(pid));
        }
    }
}
