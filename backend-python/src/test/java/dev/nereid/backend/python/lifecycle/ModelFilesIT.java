package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the files, the arguments and the environment that a model sees. */
class ModelFilesIT {
    @TempDir
    Path directory;

    @Test
    void initializeGetsSevenArguments() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", """
                    max_batch_size: 4
                    input [{ name: "IN" data_type: TYPE_FP32 dims: [ 2 ] }]
                    output [{ name: "OUT" data_type: TYPE_STRING dims: [ -1 ] }]
                    parameters { key: "k" value { string_value: "v" } }
                    instance_group [{ name: "g" kind: KIND_CPU count: 1 }]
                    """, """
                    import json
                    class TritonPythonModel:
                        def initialize(self, args):
                            config = json.loads(args.pop("model_config"))
                            print("ARGS", json.dumps(args, sort_keys=True))
                            assert all(type(v) is str for v in args.values())
                            print("CONFIG", config["max_batch_size"], config["parameters"]["k"]["string_value"],
                                  config["input"][0]["dims"], config["output"][0]["data_type"], config["platform"] == "",
                                  "dynamic_batching" in config)
                        def execute(self, requests):
                            return []
                    """).start().load("m");

            assertThat(server.log().awaitAfter("ARGS "))
                    .isEqualTo("{\"model_instance_device_id\": \"0\", "
                            + "\"model_instance_kind\": \"CPU\", \"model_instance_name\": \"g_0\", \"model_name\": \"m\", "
                            + "\"model_repository\": \"" + server.models().resolve("m")
                            + "\", \"model_version\": \"1\"}");
            assertThat(server.log().await("ARGS ")).startsWith("INFO [python g_0] ");
            assertThat(server.log().awaitAfter("CONFIG ")).isEqualTo("4 v [2] TYPE_STRING True False");
        }
    }

    @Test
    void modulesBesideTheModelAreFound() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", """
                    import sys, os, inspect
                    import triton_python_backend_utils as pb
                    from . import near
                    import beside
                    import above
                    class TritonPythonModel:
                        def initialize(self, args):
                            v, m = os.path.dirname(__file__), args["model_repository"]
                            print("ARGV", sys.argv, repr(sys.path[0]))
                            pbdir = os.path.dirname(pb.__file__)
                            print("PATH", sys.path[-3:] == [v, m, pbdir])
                            print("FILES", __name__, __file__ == m + "/1/model.py", pb.get_model_dir() == v)
                            print("MODULES", near.WHAT, beside.WHAT, above.WHAT, near.__name__)
                        def execute(self, requests):
                            return []
                    """)
                    .file("m/1/near.py", "WHAT = 'near'")
                    .file("m/1/beside.py", "WHAT = 'beside'")
                    .file("m/above.py", "WHAT = 'above'")
                    .changed(Instant.now().minusSeconds(60), "m/1/near.py", "m/above.py", "m/1/model.py")
                    .changed(Instant.now().plusSeconds(60), "m/1/beside.py")
                    .start()
                    .load("m");

            assertThat(server.log().awaitAfter("ARGV ")).isEqualTo("[''] ''");
            assertThat(server.log().awaitAfter("PATH ")).isEqualTo("True");
            assertThat(server.log().awaitAfter("FILES ")).isEqualTo("1.model True True");
            assertThat(server.log().awaitAfter("MODULES ")).isEqualTo("near beside above 1.near");
            assertThat(filesOf(server.models()))
                    .noneMatch(file -> file.contains("__pycache__") || file.endsWith(".pyc"));
            assertThat(filesOf(server.cache()))
                    .anyMatch(file -> file.matches(".*near.*\\.pyc"))
                    .anyMatch(file -> file.matches(".*above.*\\.pyc"))
                    .noneMatch(file -> file.matches(".*beside.*\\.pyc")); // it may still be edited
        }
    }

    private static List<String> filesOf(Path root) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(Path::toString).toList();
        }
    }

    @Test
    void unitTestsOfTheModelRun() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", """
                    import unittest
                    class ATest(unittest.TestCase):
                        def test_one(self):
                            print("RAN")
                    class TritonPythonModel:
                        def initialize(self, args):
                            test = unittest.main("model", exit=False)
                            print("RESULT", test.result.testsRun, len(test.result.errors), len(test.result.failures))
                        def execute(self, requests):
                            return []
                    """).start().load("m");

            assertThat(server.log().awaitAfter("RESULT ")).isEqualTo("1 0 0");
        }
    }

    @Test
    void theSurroundingsAreTheServers() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.variable("OF_THE_SERVER", "seen").model("m", """
                    import os, sys
                    class TritonPythonModel:
                        def initialize(self, args):
                            print("CWD", os.getcwd())
                            print("VARIABLE", os.environ.get("OF_THE_SERVER"))
                            print("STDIN", repr(sys.stdin.read()))
                            print("PARENT", os.getppid())
                        def execute(self, requests):
                            return []
                    """).start().load("m");

            assertThat(server.log().awaitAfter("CWD ")).isEqualTo(System.getProperty("user.dir"));
            assertThat(server.log().awaitAfter("VARIABLE ")).isEqualTo("seen");
            assertThat(server.log().awaitAfter("STDIN ")).isEqualTo("''");
            assertThat(server.log().awaitAfter("PARENT "))
                    .isEqualTo(Long.toString(ProcessHandle.current().pid()));
        }
    }

    @Test
    void aReloadSeesChangedCodeAndChangedModules() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            String code = """
                    import other
                    class TritonPythonModel:
                        def initialize(self, args):
                            print("LOADED NUMBER %s", other.WHAT)
                        def execute(self, requests):
                            return []
                    """;
            server.file("m/1/other.py", "WHAT = 'xx'")
                    .model("m", code.formatted("1"))
                    .start()
                    .load("m");
            server.log().await("LOADED NUMBER 1 xx");

            for (int i = 2; i < 7; i++) { // of the same length and, perhaps, in the same second
                server.file("m/1/model.py", code.formatted(i))
                        .file("m/1/other.py", "WHAT = '" + i + i + "'")
                        .load("m");
                server.log().await("LOADED NUMBER " + i + " " + i + i);
            }
        }
    }

    @Test
    void anotherFileIsFoundByItsName() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.file("m/config.pbtxt", "backend: \"python\" default_model_filename: \"infer.py\"")
                    .file("m/1/infer.py", """
                            class TritonPythonModel:
                                def initialize(self, args):
                                    print("NAME", __name__)
                                def execute(self, requests):
                                    return []
                            """)
                    .file("ending/config.pbtxt", "backend: \"python\" default_model_filename: \"infer.txt\"")
                    .file("ending/1/infer.txt", "")
                    .file("missing/config.pbtxt", "backend: \"python\"")
                    .file("missing/1/infer.py", "")
                    .start()
                    .load("m");

            assertThat(server.log().awaitAfter("NAME ")).isEqualTo("1.infer");
            assertThat(server.failureText("ending"))
                    .contains("Model name must end with '.py'. Model name is \"infer.txt\".");
            assertThat(server.failureText("missing"))
                    .contains(
                            "Failed to preinitialize Python stub: Python model file not found in 'missing/1/model.py'")
                    .contains("infer.py");
            server.log().await("not found in '" + server.models().resolve("missing/1/model.py") + "'");
        }
    }
}
