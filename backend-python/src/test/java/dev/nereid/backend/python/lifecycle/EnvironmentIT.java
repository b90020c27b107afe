package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models with Pythons of their own. */
class EnvironmentIT {
    private static final String REPORTING = """
            import os, sys, locale
            class TritonPythonModel:
                def initialize(self, args):
                    print("PREFIX", sys.prefix)
                    print("ENVIRONMENT", os.environ.get("VIRTUAL_ENV"), os.environ.get("VIRTUAL_ENV_PROMPT"))
                    print("PATH", os.environ["PATH"].split(":")[0], os.environ["LD_LIBRARY_PATH"].split(":")[0])
                    print("HOME", os.environ.get("PYTHONHOME"))
                def execute(self, requests):
                    return []
            """;

    @TempDir
    Path directory;

    private static String environment(String path) {
        return "parameters { key: \"EXECUTION_ENV_PATH\" value { string_value: \"" + path + "\" } }";
    }

    /** Makes the files of an environment that has the Python of this machine. */
    private static Path fake(Path root) throws IOException {
        Path bin = Files.createDirectories(root.resolve("bin"));
        Files.writeString(bin.resolve("activate"), "echo the script is not run >&2; exit 1");
        Files.createSymbolicLink(
                bin.resolve("python3"), PythonPrograms.withNumpy().orElseThrow());
        return root;
    }

    private static void tar(Path archive, Path root, String... more) {
        String[] arguments = Stream.concat(
                        Stream.of("-czf", archive.toString(), "-C", root.toString()),
                        more.length == 0 ? Stream.of(".") : Stream.of(more))
                .toArray(String[]::new);
        assumeTrue(PythonPrograms.run(Path.of("/usr/bin/tar"), arguments), "no tar on this machine");
    }

    @Test
    void aDirectoryIsAnEnvironment() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            Path root = fake(directory.resolve("an env"));
            server.variable("PYTHONHOME", "/nowhere")
                    .model("m", environment(root.toString()), REPORTING)
                    .file("m/triton_python_backend_stub", "")
                    .start()
                    .load("m");

            assertThat(server.log().lines("Using Python execution env " + root)).hasSize(1);
            assertThat(server.log().awaitAfter("ENVIRONMENT ")).isEqualTo(root + " (" + root + ")");
            assertThat(server.log().awaitAfter("PATH ")).isEqualTo(root + "/bin " + root + "/lib");
            assertThat(server.log().awaitAfter("HOME ")).isEqualTo("None");
            server.log().await("triton_python_backend_stub in its directory is not used");
        }
    }

    @Test
    void aVirtualEnvironmentInTheModelsDirectoryIsOne() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.model("m", environment("$$TRITON_MODEL_DIRECTORY/venv"), "import only_here\n" + REPORTING);
            Path root = server.models().resolve("m/venv");
            assumeTrue(
                    PythonPrograms.run(
                            PythonPrograms.withNumpy().orElseThrow(),
                            "-m",
                            "venv",
                            "--system-site-packages",
                            "--without-pip",
                            root.toString()),
                    "no venv on this machine");
            try (Stream<Path> lib = Files.list(root.resolve("lib"))) {
                Path packages = lib.findFirst().orElseThrow().resolve("site-packages");
                Files.writeString(packages.resolve("only_here.py"), "");
            }
            server.start().load("m");

            assertThat(server.log().awaitAfter("PREFIX ")).isEqualTo(root.toString());
        }
    }

    @Test
    void anArchiveIsUnpackedOnceForItsPathAndTime() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            Path archive = directory.resolve("env.tar.gz");
            tar(archive, fake(directory.resolve("env")));
            server.model("m", environment(archive.toString()), REPORTING)
                    .model("n", environment(archive.toString()), REPORTING)
                    .start()
                    .load("m");
            String first = server.log().awaitAfter("ENVIRONMENT ");
            assertThat(first).contains(server.cache().toString());

            server.changed(Instant.now().plusSeconds(5), "m/1/model.py").load("m", "n");
            assertThat(server.log().lines("Extracting Python execution env " + archive))
                    .hasSize(1);
            Files.setLastModifiedTime(archive, FileTime.from(Instant.now().plusSeconds(10)));
            server.log().clear();
            server.load("m");

            assertThat(server.log().lines("Extracting Python execution env " + archive))
                    .singleElement()
                    .asString()
                    .startsWith("FINE ");
            server.unload("m");
            server.unload("n");
        }
    }

    @Test
    void wrongEnvironmentsAreNamed() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            Path empty = Files.createDirectories(directory.resolve("empty"));
            Path pythonless = Files.createDirectories(directory.resolve("pythonless"));
            Files.createDirectories(pythonless.resolve("bin"));
            Files.writeString(pythonless.resolve("bin/activate"), "");
            Path foreign = Files.createDirectories(directory.resolve("foreign"));
            Files.createDirectories(foreign.resolve("bin"));
            Files.writeString(foreign.resolve("bin/activate"), "");
            byte[] program =
                    Files.readAllBytes(PythonPrograms.withNumpy().orElseThrow().toRealPath());
            byte[] head = Arrays.copyOf(program, Math.min(program.length, 4096));
            head[18] = 0x16; // s390
            head[19] = 0;
            Files.write(foreign.resolve("bin/python3"), head);
            assertThat(foreign.resolve("bin/python3").toFile().setExecutable(true))
                    .isTrue();
            Path foreignArchive = directory.resolve("foreign.tar.gz");
            tar(foreignArchive, foreign);
            Path damaged = Files.writeString(directory.resolve("damaged.tar.gz"), "no archive");
            server.model("missing", environment("/nowhere/env"), REPORTING)
                    .model("empty", environment(empty.toString()), REPORTING)
                    .model("pythonless", environment(pythonless.toString()), REPORTING)
                    .model("foreign", environment(foreign.toString()), REPORTING)
                    .model("archive", environment(foreignArchive.toString()), REPORTING)
                    .model("damaged", environment(damaged.toString()), REPORTING)
                    .start();

            server.failureText("missing");
            server.log().await("Failed to get the canonical path for /nowhere/env.");
            server.failureText("empty");
            server.log()
                    .await("Path " + empty + "/bin/activate does not exist. The Python environment should contain an"
                            + " 'activate' script.");
            assertThat(server.failureText("pythonless")).contains("bin/python").contains("does not exist");
            assertThat(server.failureText("foreign")).contains("a program for").contains("expected: one for");
            assertThat(server.failureText("archive")).contains("a program for").contains("expected: one for");
            assertThat(server.failureText("damaged")).contains("damaged.tar.gz");
        }
    }

    @Test
    void entriesOutsideOfTheArchiveAreRefused() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            Path script = Files.writeString(directory.resolve("make.py"), """
                    import io, sys, tarfile
                    root = sys.argv[1]
                    def archive(name, *entries):
                        with tarfile.open(root + "/" + name, "w:gz") as tar:
                            for entry, link in (("bin/activate", None),) + entries:
                                info = tarfile.TarInfo(entry)
                                if link:
                                    info.type, info.linkname = tarfile.SYMTYPE, link
                                    tar.addfile(info)
                                else:
                                    info.size = 1
                                    tar.addfile(info, io.BytesIO(b"x"))
                    archive("up.tar.gz", ("../evil", None))
                    archive("deep.tar.gz", ("bin/../../evil", None))
                    archive("root.tar.gz", (root + "/evil", None))
                    archive("link.tar.gz", ("lib", root), ("lib/evil", None))
                    """);
            assertThat(PythonPrograms.run(
                            PythonPrograms.withNumpy().orElseThrow(), script.toString(), directory.toString()))
                    .isTrue();
            for (String name : new String[] {"up", "deep", "root", "link"}) {
                server.model(
                        name, environment(directory.resolve(name + ".tar.gz").toString()), REPORTING);
            }
            server.start();

            assertThat(server.failureText("up")).contains("Path contains '..'");
            assertThat(server.failureText("deep")).contains("Path contains '..'");
            assertThat(server.failureText("root")).contains("Path is absolute");
            assertThat(server.failureText("link")).contains("link");
            assertThat(directory.resolve("evil")).doesNotExist();
        }
    }

    @Test
    void theLocaleOfTheServerReachesTheModel() throws Exception {
        String code = """
                import locale
                locale.setlocale(locale.LC_ALL, "")
                class TritonPythonModel:
                    def initialize(self, args):
                        print("LOCALE", locale.getlocale())
                    def execute(self, requests):
                        return []
                """;
        try (PythonServer server = new PythonServer(directory)) {
            server.variable("LC_ALL", "C.UTF-8")
                    .model("m", code.replace("locale.setlocale(locale.LC_ALL, \"\")\n", ""))
                    .start()
                    .load("m");
            assertThat(server.log().awaitAfter("LOCALE ")).matches("\\('(C|en_US)', 'UTF-8'\\)");
        }
        try (PythonServer server = new PythonServer(directory)) {
            server.variable("LC_ALL", "INVALID").start().load("m");
            assertThat(server.log().awaitAfter("LOCALE ")).isEqualTo("(None, None)");
        }
    }
}
