package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Backends that are written in Python, and models without programs of their own. */
class PythonBackendsIT {
    private static final String BACKEND = """
            import os, sys
            import triton_python_backend_utils as pb
            import helper
            class TritonPythonModel:
                @staticmethod
                def auto_complete_config(c):
                    c.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [1]})
                    c.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [1]})
                    return c
                def initialize(self, args):
                    print("SERVES", args["model_name"], args["model_version"], __name__, helper.WHAT,
                          pb.get_model_dir(), open(pb.get_model_dir() + "/data.txt").read())
                    print("PATH", sys.path[-2:])
                    print("REPOSITORY", args["model_repository"])
                def execute(self, requests):
                    return []
            """;

    @TempDir
    Path directory;

    private Path backends(String name) throws Exception {
        Path backends = directory.resolve("backends");
        Path own = Files.createDirectories(backends.resolve(name));
        Files.writeString(own.resolve("model.py"), BACKEND);
        Files.writeString(own.resolve("helper.py"), "WHAT = 'helper'");
        return backends;
    }

    @Test
    void modelsOfABackendInPythonHaveVersionsWithoutPrograms() throws Exception {
        Path backends = backends("words");
        try (PythonServer server = new PythonServer(directory)) {
            server.options(options -> {
                        options.plugins = List.of(backends);
                        options.backendSetting(
                                "words",
                                "executable",
                                PythonPrograms.withNumpy().orElseThrow().toString());
                    })
                    .file("a/config.pbtxt", "backend: \"words\" version_policy { all { } }")
                    .file("a/1/data.txt", "a1")
                    .file("a/2/data.txt", "a2")
                    .file("a/2/model.py", "raise ValueError('that of the version is not used')")
                    .file("b/config.pbtxt", "backend: \"words\"")
                    .file("b/1/data.txt", "b1")
                    .model("plain", """
                            class TritonPythonModel:
                                def initialize(self, args):
                                    print("PLAIN", __name__)
                                def execute(self, requests):
                                    return []
                            """)
                    .start()
                    .load("a", "b", "plain");

            Path models = server.models();
            server.log().await("SERVES a 1 model helper " + models.resolve("a/1") + " a1");
            server.log().await("SERVES a 2 model helper " + models.resolve("a/2") + " a2");
            server.log().await("SERVES b 1 model helper " + models.resolve("b/1") + " b1");
            server.log().await("REPOSITORY " + models.resolve("b"));
            assertThat(server.log().awaitAfter("PATH ")).startsWith("['" + backends.resolve("words") + "', '");
            server.log().await("PLAIN 1.model");
            assertThat(server.server()
                            .server()
                            .models()
                            .configJson(ModelRef.latest("a"))
                            .replace(" ", ""))
                    .contains("\"runtime\":\"model.py\"")
                    .contains("\"backend\":\"words\"");
            assertThat(Files.exists(backends.resolve("words/__pycache__"))).isFalse();
        }
    }

    @Test
    void aBackendInPythonHasSettingsOfItsOwn() throws Exception {
        Path backends = backends("words");
        try (PythonServer server = new PythonServer(directory)) {
            server.options(options -> {
                        options.plugins = List.of(backends);
                        options.backendSetting("words", "shm-default-byte-size", "1");
                    })
                    .file("a/config.pbtxt", "backend: \"words\"")
                    .file("a/1/data.txt", "a1")
                    .start();

            assertThat(server.failureText("a")).contains("shm-default-byte-size can't be smaller than 4 MiBs");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.options(options -> {
                        options.plugins = List.of(backends);
                        options.backendSetting("words", "executable", "/nowhere/python3");
                    })
                    .start();

            assertThat(server.failureText("a")).contains("--backend-config=words,executable=");
        }
    }

    @Test
    void anUnknownBackendIsNamed() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.file("a/config.pbtxt", "backend: \"nosuch\"")
                    .file("a/1/data.txt", "a1")
                    .start();

            assertThat(server.failureText("a"))
                    .contains("unable to find backend library for backend 'nosuch', try specifying runtime on the model"
                            + " configuration.");
        }
    }
}
