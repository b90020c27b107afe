package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Starts of processes, and what a load says of one that fails. */
class StartIT {
    private static final String REST = """
                def execute(self, requests):
                    return []
            """;

    @TempDir
    Path directory;

    private static String initializing(String body) {
        return "import os, sys, time, signal\nclass TritonPythonModel:\n    def initialize(self, args):\n"
                + body.indent(8) + REST;
    }

    @Test
    void instancesStartSideBySide() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", "instance_group [{ count: 3 kind: KIND_CPU }]", initializing("""
                            open("%s/begun-" + args["model_instance_name"], "w").close()
                            for _ in range(6000):  # each waits for the others
                                if len([f for f in os.listdir("%s") if f.startswith("begun-")]) == 3:
                                    print("TOGETHER")
                                    return
                                time.sleep(0.01)
                            """.formatted(
                                    directory, directory)))
                    .start()
                    .load("m");

            server.log().await("[python m_0_0] TOGETHER");
            server.log().await("[python m_0_1] TOGETHER");
            server.log().await("[python m_0_2] TOGETHER");
        }
    }

    @Test
    void aSlowImportHoldsUpNoOtherLoad() throws Exception {
        Path go = directory.resolve("go");
        try (PythonServer server = new PythonServer(directory)) {
            server.options(options -> options.loadThreads = 1);
            String wait = """
                    import os, time
                    print("WAITS")
                    while not os.path.exists("%s"):
                        time.sleep(0.02)
                    class TritonPythonModel:
                        def execute(self, requests):
                            return []
                    """.formatted(go);
            for (int i = 0; i < 4; i++) {
                server.model("slow" + i, wait);
            }
            server.model("m", initializing("pass")).start();
            CompletableFuture<?>[] slow = new CompletableFuture<?>[4];
            for (int i = 0; i < 4; i++) {
                slow[i] = server.begin("slow" + i);
            }
            server.log().await("WAITS");

            server.load("m");

            assertThat(slow).noneMatch(CompletableFuture::isDone);
            Files.createFile(go);
            PythonServer.await(CompletableFuture.allOf(slow));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStartMayBeLimited(boolean isOfModel) throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("start-timeout", isOfModel ? "1000" : "3")
                    .model(
                            "m",
                            isOfModel
                                    ? "parameters { key: \"START_TIMEOUT_SECONDS\" value { string_value: \"3\" } }"
                                    : "",
                            initializing("time.sleep(1000)"))
                    .model(
                            "imports",
                            isOfModel
                                    ? "parameters { key: \"START_TIMEOUT_SECONDS\" value { string_value: \"3\" } }"
                                    : "",
                            "import time\ntime.sleep(1000)")
                    .start();

            assertThat(server.failureText("m"))
                    .contains("Stub process 'm_0' is not healthy.")
                    .contains("import and initialize took longer than 3 s");
            assertThat(server.failureText("imports"))
                    .contains("Stub process 'imports_0' is not healthy.")
                    .contains("import and auto_complete_config took longer than 3 s");
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    @Test
    void errorsOfTheProgramAreNamed() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("imports", "import no_such_module\n" + initializing("pass"))
                    .model("syntax", "def f(:\n  pass\n")
                    .model("indent", "class TritonPythonModel:\n\tdef a(self):\n        pass\n")
                    .model("classless", "import json\n")
                    .model("raises", initializing("raise RuntimeError('cannot begin')"))
                    .model("empty", initializing("raise ValueError()"))
                    .model(
                            "chained",
                            initializing("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e"))
                    .model("encoding", "# -*- coding: nonsense -*-\n")
                    .start();

            assertThat(server.failureText("imports"))
                    .contains("Internal: ModuleNotFoundError: No module named 'no_such_module'\n\nAt:\n")
                    .contains("imports/1/model.py(1): <module>");
            assertThat(server.log().await("Failed to initialize Python stub for auto-complete: ModuleNotFoundError"))
                    .contains(
                            "ModuleNotFoundError: No module named 'no_such_module'\nTraceback (most recent call last):")
                    .contains("Python 3.");
            assertThat(server.failureText("syntax")).contains("SyntaxError: ").contains("model.py");
            assertThat(server.failureText("indent")).contains("TabError");
            assertThat(server.failureText("classless"))
                    .contains("AttributeError: module '1.model' has no attribute 'TritonPythonModel'");
            assertThat(server.failureText("raises"))
                    .contains("RuntimeError: cannot begin\n\nAt:\n")
                    .contains("raises/1/model.py(4): initialize");
            assertThat(server.failureText("empty")).contains("ValueError: <EMPTY MESSAGE>");
            assertThat(server.failureText("chained")).contains("KeyError: 'k'").doesNotContain("ZeroDivision");
            server.log().await("ZeroDivisionError");
            assertThat(server.log().await("Failed to initialize Python stub: RuntimeError: cannot begin"))
                    .contains("cannot begin\nTraceback (most recent call last):");
            assertThat(server.failureText("encoding")).contains("SyntaxError");
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    @Test
    void endsOfTheProcessAreNamed() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("import_exits", "import os\nprint('the last words')\nos._exit(5)\n")
                    .model("exits", initializing("print('its last words'); sys.stdout.flush(); os._exit(6)"))
                    .model("killed", initializing("os.kill(os.getpid(), 9)"))
                    .model("crashes", initializing("import ctypes; ctypes.string_at(0)"))
                    .model("system_exit", initializing("sys.exit('enough')"))
                    .model("import_system_exit", "import sys\nsys.exit(3)\n")
                    .model("interrupted", initializing("raise KeyboardInterrupt()"))
                    .start();

            assertThat(server.failureText("import_exits"))
                    .contains("Internal: Stub process 'import_exits_0' is not healthy.")
                    .contains("5")
                    .contains("the last words");
            assertThat(server.failureText("exits"))
                    .contains("Internal: Stub process 'exits_0' is not healthy.")
                    .contains("6")
                    .contains("its last words");
            assertThat(server.failureText("killed")).contains("is not healthy.").containsAnyOf("signal 9", "SIGKILL");
            assertThat(server.failureText("crashes"))
                    .contains("is not healthy.")
                    .containsAnyOf("signal 11", "SIGSEGV")
                    .contains("model.py");
            assertThat(server.failureText("system_exit")).contains("SystemExit: enough");
            assertThat(server.failureText("import_system_exit")).contains("SystemExit: 3");
            assertThat(server.failureText("interrupted")).contains("KeyboardInterrupt");
            assertThat(PythonServer.processes()).isEmpty();
        }
    }

    private Path script(String text) throws Exception {
        Path script = Files.writeString(directory.resolve("fake-python"), "#!/bin/sh\n" + text);
        return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    @Test
    void aPythonThatDoesNotFitIsNamed() throws Exception {
        Path real = PythonPrograms.withNumpy().orElse(Path.of("python3"));
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", script("exec " + real + " -S \"$@\"").toString())
                    .model("m", initializing("pass"))
                    .start();

            assertThat(server.failureText("m")).contains("NumPy").contains("Python 3.");
        }
        try (PythonServer server = new PythonServer(directory)) {
            Path old = Files.writeString(directory.resolve("old.py"), """
                    import runpy, sys
                    version = type("V", (tuple,), {})((3, 6, 9, "final", 0))
                    sys.version_info = version
                    del sys.argv[0]
                    runpy.run_path(sys.argv[0], run_name="__main__")
                    """);
            server.setting(
                            "executable",
                            script("exec " + real + " " + old + " \"$@\"").toString())
                    .start();

            assertThat(server.failureText("m"))
                    .contains("Python 3.6.9")
                    .contains("is too old")
                    .contains("3.9");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting(
                            "executable",
                            script("echo this is no Python; exit 4").toString())
                    .start();

            assertThat(server.failureText("m"))
                    .contains("is not healthy.")
                    .contains("this is no Python")
                    .contains("4");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", script("exec sleep 1000").toString()).start();

            assertThat(server.failureText("m"))
                    .contains("did not connect within 10 s")
                    .contains("fake-python");
            assertThat(PythonServer.processes()).isEmpty();
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", "/nowhere/python3").start();

            assertThat(server.failureText("m"))
                    .contains("Unavailable: --backend-config=python,executable=python3: does not exist")
                    .contains("install Python 3.9 or later with NumPy");
            server.log().await("executable=/nowhere/python3: does not exist");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", "")
                    .variable("PATH", directory.toString())
                    .start();

            assertThat(server.failureText("m"))
                    .contains("python3: not found on the path")
                    .contains("install Python 3.9 or later with NumPy");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", directory.toString()).start();

            assertThat(server.failureText("m")).contains("a directory");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("executable", script("exit 0").toString()).start();
            Files.writeString(directory.resolve("fake-python"), "no program");

            assertThat(server.failureText("m")).contains("fake-python");
        }
    }

    @Test
    void namesOfModelsAreChecked() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            List<String> refused = List.of(
                    ";", "|", "&", "$", "<", ">", "(", ")", "[", "]", "{", "}", "\"", "'", "*", "?", "~", "#", "!",
                    "`"); // and '\\', which the server itself refuses
            for (String c : refused) {
                server.file("a" + c + "b/config.pbtxt", "backend: \"python\"")
                        .file("a" + c + "b/1/model.py", initializing("pass"));
            }
            server.start();

            for (String c : refused) {
                assertThat(server.failureText("a" + c + "b"))
                        .as("model 'a%sb'", c)
                        .contains("Invalid argument: Invalid stub name: contains invalid characters");
            }
            server.file("ä b,c@d%e^f+g=h/config.pbtxt", "backend: \"python\"")
                    .file("ä b,c@d%e^f+g=h/1/model.py", initializing("pass"))
                    .load("ä b,c@d%e^f+g=h");
        }
    }

    @Test
    void aStartIsGivenUpWithTheServer() throws Exception {
        CompletableFuture<Void> load;
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", initializing("print('SLEEPS'); time.sleep(1000)"))
                    .options(options -> options.exitTimeout = Duration.ofSeconds(3))
                    .start();
            load = server.begin("m");
            server.log().await("SLEEPS");
        }
        assertThat(PythonServer.processes()).isEmpty();
        assertThat(load).isDone();
    }
}
