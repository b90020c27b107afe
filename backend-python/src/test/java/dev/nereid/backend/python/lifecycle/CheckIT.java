package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.PythonProvider;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.CheckReport.ModelReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Checks of repositories with models in Python. */
class CheckIT {
    private static final String GOOD = """
            import triton_python_backend_utils as pb
            class TritonPythonModel:
                def initialize(self, args):
                    print("INITIALIZED")
                def execute(self, requests):
                    return [pb.get_input_tensor_by_name(r, "IN") for r in requests]
            """;

    private static final String COMPLETE = """
                @staticmethod
                def auto_complete_config(c):
                    c.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [1]})
                    c.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [1]})
                    return c
            """;

    @TempDir
    Path directory;

    private static Map<String, ModelReport> byName(CheckReport report) {
        return report.models().stream().collect(Collectors.toMap(ModelReport::name, Function.identity()));
    }

    private static String errors(ModelReport model) {
        return model.errors().toString();
    }

    private static ServerOptions options(PythonServer server, String executable) {
        return ServerOptions.of(server.models())
                .with(o -> {
                    o.providers = List.of(new PythonProvider());
                    o.environment = System.getenv();
                    o.pluginCache = server.cache();
                })
                .withBackendSetting("python", "executable", executable);
    }

    @Test
    void opensModelsAsTheServerDoes() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("good", GOOD)
                    .model("imports", "import no_such_module\n" + GOOD)
                    .model("syntax", "def f(:\n  pass\n")
                    .model("exits", "import os\nos._exit(3)\n" + GOOD)
                    .model("classless", "print('nothing else')\n")
                    .model("misspelt", GOOD.replace("def execute", "def excute").replace("\"IN\"", "\"INN\""))
                    .model("fails", GOOD.replace("print(\"INITIALIZED\")", "raise ValueError('cannot begin')"))
                    .file("bare/1/model.py", GOOD + COMPLETE);
            ServerOptions options =
                    options(server, PythonPrograms.withNumpy().orElseThrow().toString());

            Map<String, ModelReport> models = byName(RepositoryCheck.run(options));

            assertThat(PythonServer.processes()).isEmpty();
            assertThat(server.log().lines("INITIALIZED"))
                    .as("only a load initializes")
                    .isEmpty();
            assertThat(models.get("good").isValid()).isTrue();
            assertThat(models.get("good").warnings()).isEmpty();
            assertThat(models.get("bare").isValid()).isTrue();
            assertThat(models.get("bare").config().orElseThrow().getInputCount())
                    .isEqualTo(1);
            assertThat(errors(models.get("imports"))).contains("No module named 'no_such_module'");
            assertThat(errors(models.get("syntax"))).contains("SyntaxError");
            assertThat(errors(models.get("exits"))).contains("exit code 3");
            assertThat(errors(models.get("classless"))).contains("has no attribute 'TritonPythonModel'");
            assertThat(models.get("classless").warnings())
                    .containsExactly("1/model.py: no class TritonPythonModel (expected: the class of the model)");
            assertThat(models.get("misspelt").isValid()).isTrue();
            assertThat(models.get("misspelt").warnings())
                    .containsExactly(
                            "1/model.py:5: the server does not call excute (expected: execute)",
                            "1/model.py:6: the configuration has no input 'INN', of which get_input_tensor_by_name"
                                    + " returns None (expected: IN)");
            assertThat(models.get("fails").isValid()).isTrue();
            server.log().await("1/model.py:5: the server does not call excute");

            Map<String, ModelReport> loaded = byName(RepositoryCheck.runWithLoads(options));

            assertThat(errors(loaded.get("fails"))).contains("ValueError: cannot begin");
            assertThat(loaded.get("good").isValid()).isTrue();
            assertThat(loaded.get("misspelt").warnings())
                    .isEqualTo(models.get("misspelt").warnings());
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    @Test
    void looksAtProgramsWithoutPython() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("misspelt", GOOD.replace("def execute", "def excute"));

            ModelReport model = byName(RepositoryCheck.run(options(server, "/nowhere/python3")))
                    .get("misspelt");

            assertThat(errors(model)).contains("install Python 3.9 or later with NumPy");
            assertThat(model.warnings())
                    .containsExactly("1/model.py:5: the server does not call excute (expected: execute)");
        }
    }
}
