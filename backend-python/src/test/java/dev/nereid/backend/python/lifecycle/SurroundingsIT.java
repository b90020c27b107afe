package dev.nereid.backend.python.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Variables, limits and devices of processes. */
class SurroundingsIT {
    @TempDir
    Path directory;

    private static String initializing(String body) {
        return "import json, os, resource, sys, time\nclass TritonPythonModel:\n    def initialize(self, args):\n"
                + body.indent(8) + "    def execute(self, requests):\n        return []\n";
    }

    private static String parameters(String... pairs) {
        StringBuilder config = new StringBuilder();
        for (int i = 0; i < pairs.length; i += 2) {
            config.append("parameters { key: \"" + pairs[i] + "\" value { string_value: \"" + pairs[i + 1] + "\" } } ");
        }
        return config.toString();
    }

    @Test
    void secretsOfTheServerAreLeftOut() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            server.variable("AWS_SECRET_ACCESS_KEY", "secret")
                    .variable("NEREID_HTTP_RESTRICTED_API", "secret")
                    .variable("NOT_SECRET", "secret")
                    .model(
                            "m",
                            initializing("print('SECRETS', sorted(k for k, v in os.environ.items() if v == 'secret'))"))
                    .start()
                    .load("m");

            assertThat(server.log().awaitAfter("SECRETS ")).isEqualTo("['NOT_SECRET']");
        }
    }

    @Test
    void theKernelLimitsAProcess() throws Exception {
        String report = """
                print("LIMITS", resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_CPU)[0],
                      resource.getrlimit(resource.RLIMIT_NOFILE)[0])
                """;
        try (PythonServer server = new PythonServer(directory)) {
            server.setting("limit-memory", "8G")
                    .setting("limit-open-files", "100")
                    .model(
                            "m",
                            parameters("LIMIT_PROCESSOR_SECONDS", "1000", "LIMIT_OPEN_FILES", "200"),
                            initializing(report))
                    .model("greedy", parameters("LIMIT_MEMORY", "2G"), initializing("data = b'x' * (4 << 30)"))
                    .model("busy", parameters("LIMIT_PROCESSOR_SECONDS", "1"), initializing("while True: pass"))
                    .model("wrong", parameters("LIMIT_MEMORY", "much"), initializing("pass"))
                    .model("few", parameters("LIMIT_OPEN_FILES", "3"), initializing("pass"))
                    .start()
                    .load("m");

            assertThat(server.log().awaitAfter("LIMITS ")).isEqualTo((8L << 30) + " 1000 200");
            assertThat(server.failureText("greedy")).contains("MemoryError");
            assertThat(server.failureText("busy")).contains("is not healthy.").contains("SIGXCPU");
            assertThat(server.failureText("wrong")).contains("LIMIT_MEMORY").contains("much");
            assertThat(server.failureText("few")).contains("LIMIT_OPEN_FILES").contains("64");
        }
    }

    @Test
    void withoutGpusTheGroupSaysSo() throws Exception {
        try (PythonServer server = new PythonServer(directory)) {
            String report = "print('DEVICE', args['model_instance_kind'], args['model_instance_device_id'],"
                    + " os.environ.get('CUDA_VISIBLE_DEVICES'))";
            server.variable("CUDA_VISIBLE_DEVICES", "")
                    .model("auto", "instance_group [{ kind: KIND_AUTO }]", initializing(report))
                    .model("gpu", "instance_group [{ kind: KIND_GPU }]", initializing(report))
                    .model(
                            "model",
                            "instance_group [{ kind: KIND_MODEL }]",
                            initializing(report.replace("DEVICE", "MODEL")))
                    .start()
                    .load("auto", "model");

            assertThat(server.log().awaitAfter("DEVICE ")).startsWith("CPU 0");
            assertThat(server.log().awaitAfter("MODEL ")).startsWith("MODEL 0");
            assertThat(server.failureText("gpu")).contains("has kind KIND_GPU but no GPUs are available");
        }
    }
}
