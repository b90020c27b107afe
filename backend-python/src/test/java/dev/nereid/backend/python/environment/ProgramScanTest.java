package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ProgramScanTest {
    private static final String GOOD = """
            import json
            import triton_python_backend_utils as pb_utils
            # get_input_tensor_by_name(request, "commented")

            class Other:
                def initialise(self):
                    pass

            class TritonPythonModel:
                \"""Has no get_input_tensor_by_name(request, "documented").\"""

                def initialize(self, args):
                    self.config = json.loads(args["model_config"])
                    pb_utils.get_output_config_by_name(self.config, "OUT")

                def execute(self, requests):
                    def excute():
                        pass
                    for request in requests:
                        pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
                        pb_utils.get_input_tensor_by_name(request, name)
                        pb_utils.get_input_tensor_by_name(request, f"IN_{i}")
                        pb_utils.get_input_tensor_by_name(request, "IN_" + name)
                        pb_utils.get_output_tensor_by_name(response, "FOREIGN")

                def finalize(self):
                    print("it's # no comment", 'nor "this"')
            """;

    private static ModelSettings settings() {
        return ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(1)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                .build();
    }

    private static List<String> scan(String program) {
        return ProgramScan.of("1/model.py", program, settings());
    }

    @Test
    void blamesNoGoodProgram() {
        assertThat(scan(GOOD)).isEmpty();
        assertThat(scan(GOOD.replace("\n", "\r\n"))).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "import numpy",
                "class Model:\n    def execute(self, requests):\n        pass\n",
                "'''class TritonPythonModel:'''",
                "# class TritonPythonModel:"
            })
    void missesTheClass(String program) {
        assertThat(scan(program))
                .containsExactly("1/model.py: no class TritonPythonModel (expected: the class of the model)");
    }

    @Test
    void namesAMisspeltClass() {
        assertThat(scan("\nclass TritonPythonModle:\n    pass\n"))
                .containsExactly("1/model.py: no class TritonPythonModel."
                        + " Did you mean it by class TritonPythonModle in line 2?");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "from impl import TritonPythonModel",
                "from impl import *",
                "TritonPythonModel = make()",
                "class TritonPythonModel(Base):\n    pass\n",
                "class TritonPythonModel(\n    Base,\n):\n    pass\n",
                "class TritonPythonModel:\n    execute = make()\n",
                "class TritonPythonModel(object):\n    async def execute(self, r):\n        pass\n",
                "if True:\n  class TritonPythonModel:\n    pass\n"
            })
    void leavesOtherWaysAlone(String program) {
        assertThat(scan(program)).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "initialise, initialize",
        "intialize, initialize",
        "Initialize, initialize",
        "excute, execute",
        "exceute, execute",
        "predict, execute",
        "finalise, finalize",
        "finalize_, finalize",
        "auto_complete_configuration, auto_complete_config",
        "autocomplete_config, auto_complete_config",
        "isready, is_ready"
    })
    void namesMisspeltFunctions(String written, String expected) {
        String program = "class TritonPythonModel:\n    def %s(self):\n        pass\n".formatted(written);
        String execute = expected.equals("execute") ? "" : "    def execute(self, r):\n        pass\n";

        assertThat(scan(program + execute))
                .containsExactly("1/model.py:2: the server does not call " + written + " (expected: " + expected + ")");
    }

    @Test
    void missesExecute() {
        assertThat(scan("class TritonPythonModel:\n    def initialize(self, args):\n        pass\n"))
                .containsExactly("1/model.py:1: class TritonPythonModel has no function execute, without which each"
                        + " request fails");
    }

    @Test
    void namesTensorsThatAreNotConfigured() {
        String program = GOOD.replace("(request, \"IN\")", "(request, 'INPUT')").replace("\"OUT\"", "\"OUTPUT\"");

        assertThat(scan(program))
                .containsExactly(
                        "1/model.py:14: the configuration has no output 'OUTPUT', of which get_output_config_by_name"
                                + " returns None (expected: OUT)",
                        "1/model.py:20: the configuration has no input 'INPUT', of which get_input_tensor_by_name"
                                + " returns None (expected: IN)");
        assertThat(scan(program.replace("def finalize", "def auto_complete_config")))
                .as("the model completes the configuration")
                .isEmpty();
        assertThat(ProgramScan.of(
                        "1/model.py", program, ModelSettings.builder("m", 1).build()))
                .as("nothing is configured")
                .isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"class TritonPythonModel", "\"\"\"", "'\\", "class TritonPythonModel(", "def", "\0\0", "'''\\"})
    void readsAnyText(String program) {
        assertThat(scan(program)).hasSizeLessThan(3);
        assertThat(scan(program.repeat(1000))).hasSizeLessThan(3);
    }
}
