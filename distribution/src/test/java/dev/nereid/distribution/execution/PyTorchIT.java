package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.MemoryUse;
import dev.nereid.distribution.testing.PyTorchModels;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelInferResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Models of TorchScript over both protocols: texts, dictionaries, sequences with states, in ensembles, reloaded. */
@Tag("slow")
class PyTorchIT {
    private static final int PIXELS = 64;
    private static final float INK = 16;
    private static final double MIN_ACCURACY = 0.95;
    private static final int RELOADS = 50;
    private static final int CLIENTS = 4;
    private static final int ROUNDS = 50;
    private static final double MAX_GROWTH = 0.05;
    private static final long TIMEOUT_SECONDS = 120;
    private static final String LIMIT = "org.bytedeco.javacpp.maxphysicalbytes";
    private static final List<String> WORDS =
            List.of("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine");

    private static final String ADD_SUB = """
            %s
            max_batch_size: 8
            input [ { name: "INPUT1" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } ]
            output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "OUTPUT__1" data_type: TYPE_FP32 dims: [ 2 ] } ]
            """;

    private static final String SHOUT = """
            backend: "pytorch"
            max_batch_size: 16
            input { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }
            output { name: "LOUD__0" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } }
            dynamic_batching { max_queue_delay_microseconds: 2000 }
            """;

    private static final String DICTIONARY = """
            backend: "pytorch"
            max_batch_size: 8
            input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "b" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "sum" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "difference" data_type: TYPE_FP32 dims: [ -1 ] } ]
            """;

    private static final String ACCUMULATOR = """
            backend: "pytorch"
            max_batch_size: 4
            input { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] }
            sequence_batching {
              max_sequence_idle_microseconds: 900000000
              %s
              control_input { name: "START__2" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
              state { input_name: "STATE__1" output_name: "STATE__1" data_type: TYPE_FP32 dims: [ 1 ] }
            }
            instance_group { count: 2 kind: KIND_CPU }
            """;

    private static final String BEST = """
            backend: "pytorch"
            max_batch_size: 32
            input { name: "probabilities" data_type: TYPE_FP32 dims: [ 10 ] }
            output [ { name: "index__0" data_type: TYPE_INT64 dims: [ 1 ] reshape { shape: [ ] } },
                     { name: "word__1" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } } ]
            """;

    private static final String READ = """
            platform: "ensemble"
            max_batch_size: 32
            input { name: "IMAGE" data_type: TYPE_FP32 dims: [ 1, 8, 8 ] }
            output [ { name: "INDEX" data_type: TYPE_INT64 dims: [ 1 ] }, { name: "WORD" data_type: TYPE_STRING dims: [ 1 ] } ]
            ensemble_scheduling {
              step { model_name: "digits" model_version: -1
                input_map { key: "image" value: "IMAGE" } output_map { key: "probabilities" value: "P" } }
              step { model_name: "best" model_version: -1
                input_map { key: "probabilities" value: "P" }
                output_map { key: "index__0" value: "INDEX" } output_map { key: "word__1" value: "WORD" } }
            }
            """;

    private static final String COUNTER = """
            backend: "pytorch"
            input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 1 ] }
            model_warmup { name: "zeros" batch_size: 1 count: 3
              inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
            """;

    private static final String PICKY = """
            backend: "pytorch"
            max_batch_size: 4
            input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }
            output { name: "root__0" data_type: TYPE_FP32 dims: [ 2 ] }
            """;

    private static final String ECHO = """
            backend: "pytorch"
            input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "y__0" data_type: TYPE_FP32 dims: [ -1 ] }
            """;

    @TempDir
    private static Path directory;

    private static Path scripts;

    @RegisterExtension
    private static final ServerExtension server =
            new ServerExtension(() -> TestServer.of(models()).with(o -> o.explicit("*")));

    private volatile boolean ended;

    private static Repository models() throws IOException, InterruptedException {
        scripts = PyTorchModels.make(directory.resolve("scripts"));
        Repository models = new Repository(Files.createDirectory(directory.resolve("models")));
        add(models, "add_sub", "by_backend", ADD_SUB.formatted("backend: \"pytorch\""));
        add(models, "add_sub", "by_platform", ADD_SUB.formatted("platform: \"pytorch_libtorch\""));
        add(models, "shout", "shout", SHOUT);
        add(models, "dictionary", "dictionary", DICTIONARY);
        add(models, "accumulator", "direct", ACCUMULATOR.formatted("direct { }"));
        add(models, "accumulator", "oldest", ACCUMULATOR.formatted("oldest { max_candidate_sequences: 8 }"));
        add(models, "best", "best", BEST);
        add(models, "counter", "counter", COUNTER);
        add(models, "picky", "picky", PICKY);
        models.copyOf(scripts.resolve("alone"));
        models.copyOf(TestPaths.checkout().resolve("examples/models/digits"));
        models.copyOf(TestPaths.checkout().resolve("examples/pytorch-models/digits_torchscript"));
        models.model("read", READ);
        System.setProperty(LIMIT, "12345678"); // as a user's program may have it for presets of its own
        return models;
    }

    private static void add(Repository models, String script, String name, String config) throws IOException {
        models.model(name, config);
        Files.copy(
                scripts.resolve(script).resolve("1/model.pt"),
                models.directory().resolve(name).resolve("1/model.pt"));
    }

    @AfterAll
    static void clearLimit() {
        System.clearProperty(LIMIT);
    }

    private static GRPCInferenceServiceBlockingStub grpc() {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static Map<String, byte[]> overGrpc(ClientRequest request) {
        ModelInferResponse response = grpc().modelInfer(request.overGrpc());
        Map<String, byte[]> outputs = new LinkedHashMap<>();
        for (int i = 0; i < response.getOutputsCount(); i++) {
            outputs.put(
                    response.getOutputs(i).getName(),
                    response.getRawOutputContents(i).toByteArray());
        }
        return outputs;
    }

    private static Map<String, byte[]> overHttp(HttpConnection http, ClientRequest request) throws IOException {
        RawHttpResponse response = http.exchange(request.overHttp());
        assertThat(response.status()).as(response::text).isEqualTo(200);
        return response.binaryOutputs();
    }

    /** Sends a request over each protocol; the results have to be the same. */
    private static Map<String, byte[]> overBoth(ClientRequest request) throws IOException {
        try (HttpConnection http = server.http()) {
            Map<String, byte[]> outputs = overHttp(http, request);
            assertThat(overGrpc(request)).containsExactlyEntriesOf(outputs);
            return outputs;
        }
    }

    private static String get(String path) throws IOException {
        try (HttpConnection http = server.http()) {
            RawHttpResponse response = http.exchange(HttpRequests.get(path));
            assertThat(response.status()).as(response::text).isEqualTo(200);
            return response.text();
        }
    }

    private static ClientRequest floats(String model, String input, float... values) {
        return ClientRequest.of(model).input(input, "FP32", TensorBytes.floats(values), values.length);
    }

    @Test
    void namesOfArgumentsHoldInAnyOrderForBothWaysToChooseTheBackend() throws IOException {
        for (String model : List.of("by_backend", "by_platform")) {
            Map<String, byte[]> outputs = overBoth(ClientRequest.of(model)
                    .input("INPUT0", "FP32", TensorBytes.floats(5, 7), 1, 2)
                    .input("INPUT1", "FP32", TensorBytes.floats(1, 2), 1, 2));

            assertThat(TensorBytes.toFloats(outputs.get("OUTPUT__0"))).containsExactly(6, 9);
            assertThat(TensorBytes.toFloats(outputs.get("OUTPUT__1"))).containsExactly(4, 5);
        }
    }

    @Test
    void theServedConfigurationIsThatOfTheReferenceServer() throws IOException {
        assertThat(get("/v2/models/by_backend/config"))
                .contains("\"platform\":\"pytorch_libtorch\"", "\"backend\":\"pytorch\"")
                .contains("\"default_model_filename\":\"model.pt\"");
        assertThat(get("/v2/models/by_platform/config"))
                .contains("\"platform\":\"pytorch_libtorch\"", "\"backend\":\"pytorch\"")
                .contains("\"default_model_filename\":\"\"");
        assertThat(get("/v2/models/alone/config"))
                .contains("\"platform\":\"pytorch_libtorch\"", "\"backend\":\"pytorch\"")
                .contains("\"default_model_filename\":\"model.pt\"", "\"max_batch_size\":0")
                .containsPattern("\"instance_group\":\\[\\{[^]]*\"count\":1,");
    }

    @Test
    void aFileWithTheInputsOfItsTraceNeedsNoConfiguration() throws IOException {
        assertThat(get("/v2/models/alone"))
                .contains("{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,3]}")
                .contains("{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2]}")
                .contains("\"outputs\":[{\"name\":\"OUTPUT__0\",\"datatype\":\"FP32\",\"shape\":[2]}]");

        Map<String, byte[]> outputs = overBoth(ClientRequest.of("alone")
                .input("x", "FP32", TensorBytes.floats(1, 2, 3, 4, 5, 6), 2, 3)
                .input("y", "FP32", TensorBytes.floats(10, 20), 2));

        assertThat(TensorBytes.toFloats(outputs.get("OUTPUT__0"))).containsExactly(16, 35);
    }

    @Test
    void theExampleReadsDigits() throws IOException {
        List<int[]> digits = digits();
        int right = 0;
        for (int from = 0; from < digits.size(); from += 30) {
            List<int[]> images = digits.subList(from, Math.min(from + 30, digits.size()));
            List<String> words = TensorBytes.toStrings(overGrpc(images("digits_torchscript", "pixels", images, PIXELS))
                    .get("digit__1"));
            for (int i = 0; i < images.size(); i++) {
                right += words.get(i).equals(WORDS.get(images.get(i)[0])) ? 1 : 0;
            }
        }
        assertThat((double) right / digits.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
    }

    private static List<int[]> digits() throws IOException {
        try (var lines = Files.lines(TestPaths.checkout().resolve("examples/training/digits_test.csv"))) {
            return lines.map(line -> Arrays.stream(line.split(","))
                            .mapToInt(Integer::parseInt)
                            .toArray())
                    .toList();
        }
    }

    private static ClientRequest images(String model, String input, List<int[]> images, long... dims) {
        float[] pixels = new float[images.size() * PIXELS];
        for (int i = 0; i < images.size(); i++) {
            for (int k = 0; k < PIXELS; k++) {
                pixels[i * PIXELS + k] = images.get(i)[k + 1] / INK;
            }
        }
        long[] shape = new long[dims.length + 1];
        shape[0] = images.size();
        System.arraycopy(dims, 0, shape, 1, dims.length);
        return ClientRequest.of(model).input(input, "FP32", TensorBytes.floats(pixels), shape);
    }

    /** The reference server would give each request the first texts of the batch. */
    @Test
    void requestsOfABatchGetTheirOwnTexts() throws Exception {
        try (ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                int client = i;
                all.add(clients.submit(() -> {
                    try (HttpConnection http = server.http()) {
                        for (int turn = 0; turn < ROUNDS; turn++) {
                            String first = "ab" + client + "ü" + turn;
                            ClientRequest request = ClientRequest.of("shout")
                                    .input("TEXT", "BYTES", TensorBytes.strings(first, "", "x" + client), 3, 1);
                            Map<String, byte[]> outputs = client % 2 == 0 ? overHttp(http, request) : overGrpc(request);
                            assertThat(TensorBytes.toStrings(outputs.get("LOUD__0")))
                                    .containsExactly("AB" + client + "ü" + turn, "", "X" + client);
                        }
                    }
                    return null;
                }));
            }
            for (Future<?> client : all) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        }
        assertThat(get("/v2/models/shout/stats")).containsPattern("\"batch_size\":(6|9|12)\\b");
    }

    @Test
    void dictionariesGoInAndOutByTheirKeys() throws IOException {
        Map<String, byte[]> outputs = overBoth(ClientRequest.of("dictionary")
                .input("a", "FP32", TensorBytes.floats(5, 7, 9), 1, 3)
                .input("b", "FP32", TensorBytes.floats(1, 2, 3), 1, 3));

        assertThat(TensorBytes.toFloats(outputs.get("sum"))).containsExactly(6, 9, 12);
        assertThat(TensorBytes.toFloats(outputs.get("difference"))).containsExactly(4, 5, 6);
    }

    @Test
    void theServerKeepsTheStateOfSequences() {
        for (String model : List.of("direct", "oldest")) {
            float[] sums = new float[6];
            for (int turn = 0; turn < 5; turn++) {
                for (int id = 1; id <= 5; id++) {
                    sums[id] += id * turn;
                    Map<String, byte[]> outputs = overGrpc(ClientRequest.of(model)
                            .input("INPUT__0", "FP32", TensorBytes.floats(id * turn), 1, 1)
                            .inSequence(id, turn == 0, turn == 4));
                    assertThat(TensorBytes.toFloats(outputs.get("OUTPUT__0")))
                            .as("%s, sequence %d, turn %d", model, id, turn)
                            .containsExactly(sums[id]);
                }
            }
        }
    }

    @Test
    void isAStepOfAnEnsembleBehindOnnxRuntime() throws IOException {
        List<int[]> images = digits().subList(0, 20);

        Map<String, byte[]> outputs = overBoth(images("read", "IMAGE", images, 1, 8, 8));

        assertThat(TensorBytes.toStrings(outputs.get("WORD")))
                .containsExactlyElementsOf(
                        images.stream().map(image -> WORDS.get(image[0])).toList());
        assertThat(outputs.get("INDEX")).hasSize(20 * Long.BYTES);
    }

    /** A module that counts its executions has executed the three samples, and nothing else, before the first request. */
    @Test
    void warmsUpByTheSamplesOfTheConfiguration() {
        assertThat(TensorBytes.toFloats(overGrpc(floats("counter", "x", 0)).get("OUTPUT__0")))
                .containsExactly(4);
    }

    @Test
    void aFailureOfAScriptNamesTheLineAndFailsItsRequestAlone() throws IOException {
        ClientRequest wrong = ClientRequest.of("picky").input("x", "FP32", TensorBytes.floats(4, -1), 1, 2);
        ClientRequest right = ClientRequest.of("picky").input("x", "FP32", TensorBytes.floats(4, 9), 1, 2);
        try (HttpConnection http = server.http()) {
            RawHttpResponse refused = http.exchange(wrong.overHttp());
            assertThat(refused.status()).isEqualTo(500);
            assertThat(refused.error())
                    .startsWith("PyTorch execute failure: ")
                    .contains("x: below 0 (expected: none)", "line ")
                    .doesNotContain("Exception raised from", "frame #");
            assertThat(TensorBytes.toFloats(overHttp(http, right).get("root__0")))
                    .containsExactly(2, 3);
        }
        assertThatThrownBy(() -> overGrpc(wrong)).hasMessageContaining("INTERNAL: PyTorch execute failure: ");
    }

    @Test
    void statisticsCountExecutionsAndMemory() throws IOException {
        overGrpc(images("digits_torchscript", "pixels", digits().subList(0, 2), PIXELS));

        assertThat(get("/v2/models/digits_torchscript/stats"))
                .containsPattern("\"execution_count\":[1-9]")
                .containsPattern("\"compute_infer\":\\{\"count\":[1-9]\\d*,\"ns\":[1-9]")
                .contains("\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,\"byte_size\":9640}]");
    }

    @Test
    void refusesInstancesOnGpus() {
        Map<String, String> config = Map.of("config", """
                {"backend": "pytorch", "max_batch_size": 8,
                 "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [2]},
                           {"name": "INPUT1", "data_type": "TYPE_FP32", "dims": [2]}],
                 "output": [{"name": "OUTPUT__0", "data_type": "TYPE_FP32", "dims": [2]}],
                 "instance_group": [{"kind": "KIND_GPU", "count": 1}]}""");
        ModelControl.Load load =
                new ModelControl.Load("by_backend", Optional.of(config.get("config")), Map.of()).forced();

        assertThatThrownBy(() -> server.server()
                        .control()
                        .load(load)
                        .toCompletableFuture()
                        .get(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                .rootCause()
                .hasMessageContaining("KIND_GPU");
        overGrpc(ClientRequest.of("by_backend")
                .input("INPUT0", "FP32", TensorBytes.floats(5, 7), 1, 2)
                .input("INPUT1", "FP32", TensorBytes.floats(1, 2), 1, 2));
    }

    /** An identity script returns the memory of its input, here poisoned as soon as it is freed. */
    @Test
    void outputsThatLieInInputsStayIntactInASecondServerOfTheProcess() throws Exception {
        Repository models = new Repository(Files.createDirectory(directory.resolve("echo-models")));
        add(models, "echo", "echo", ECHO);
        try (TestServer poisoned =
                        TestServer.open(NereidServer.start(TestServer.of(models).with(o -> o.poisonFreed = true)));
                ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                float client = i;
                all.add(clients.submit(() -> {
                    echo(poisoned, client);
                    return null;
                }));
            }
            for (Future<?> client : all) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
            assertThat(PyTorchModels.mapped("self")).hasSize(1);
        }
    }

    private static void echo(TestServer poisoned, float client) throws IOException {
        float[] values = new float[1 << 14];
        try (HttpConnection http = poisoned.http()) {
            for (int turn = 0; turn < 100; turn++) {
                Arrays.fill(values, client + 10 * turn);
                assertThat(TensorBytes.toFloats(
                                overHttp(http, floats("echo", "x", values)).get("y__0")))
                        .isEqualTo(values);
            }
        }
    }

    /** Class loaders of a replaced plugin and of a second server share the libraries that the process has. */
    @Test
    void aReplacedPluginUsesTheLoadedLibraries() throws Exception {
        Path plugins = Files.createDirectory(directory.resolve("plugins"));
        new Repository(plugins).copyOf(PyTorchModels.plugin());
        Path plugin = plugins.resolve("pytorch");
        Repository models = new Repository(Files.createDirectory(directory.resolve("replaced-models")));
        add(models, "echo", "before", ECHO);
        add(models, "echo", "after", ECHO);
        try (TestServer other = TestServer.open(
                NereidServer.start(TestServer.of(models).withPlugins(plugins).with(o -> o.explicit("before"))))) {
            echo(other, 1, "before");

            touch(plugin);
            load(other.server(), "after");

            echo(other, 2, "after");
            echo(other, 3, "before");
        }
        assertThat(PyTorchModels.mapped("self")).hasSize(1);
        assertThat(System.getProperty(LIMIT)).isEqualTo("12345678");
    }

    /** Adds a file to the plugin's own jar. */
    private static void touch(Path plugin) throws IOException {
        Path jar;
        try (var files = Files.list(plugin)) {
            jar = files.filter(file -> file.getFileName().toString().startsWith("nereid-backend-pytorch"))
                    .findFirst()
                    .orElseThrow();
        }
        Path next = Files.copy(jar, directory.resolve("next.jar"));
        try (var zip = java.nio.file.FileSystems.newFileSystem(next, Map.<String, Object>of())) {
            Files.writeString(zip.getPath("/version.txt"), "another version");
        }
        Files.move(next, jar, java.nio.file.StandardCopyOption.REPLACE_EXISTING);
    }

    private static void echo(TestServer on, float value, String model) throws IOException {
        try (HttpConnection http = on.http()) {
            assertThat(TensorBytes.toFloats(
                            overHttp(http, floats(model, "x", value)).get("y__0")))
                    .containsExactly(value);
        }
    }

    @Test
    void reloadsFiftyTimesUnderLoadWithoutAFailedRequestAndWithoutGrowth() throws Exception {
        AtomicLong answered = new AtomicLong();
        try (ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                boolean overHttp = i % 2 == 0;
                all.add(clients.submit(() -> {
                    client(overHttp, answered);
                    return null;
                }));
            }
            long before;
            long after;
            try {
                reload(RELOADS / 2); // pools, compiled code and the like have grown by then
                before = MemoryUse.now().resident();
                reload(RELOADS);
                after = MemoryUse.now().resident();
            } finally {
                ended = true; // the pool waits for its clients, also after a failed reload
            }
            for (Future<?> client : all) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }

            assertThat(answered.get()).isGreaterThan(10L * RELOADS);
            assertThat((double) (after - before) / before)
                    .as("growth from %d to %d bytes", before, after)
                    .isLessThan(MAX_GROWTH);
        }
    }

    private static void reload(int times) throws Exception {
        for (int i = 0; i < times; i++) {
            load(server.server(), "best");
        }
    }

    private static void load(NereidServer on, String model) throws Exception {
        ModelControl.Load load = new ModelControl.Load(model, Optional.empty(), Map.of()).forced();
        on.control().load(load).toCompletableFuture().get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private void client(boolean overHttp, AtomicLong answered) throws IOException {
        float[] rows = new float[2 * WORDS.size()];
        rows[3] = 1;
        rows[WORDS.size() + 8] = 1;
        ClientRequest request =
                ClientRequest.of("best").input("probabilities", "FP32", TensorBytes.floats(rows), 2, WORDS.size());
        try (HttpConnection http = server.http()) {
            while (!ended) {
                Map<String, byte[]> outputs = overHttp ? overHttp(http, request) : overGrpc(request);
                assertThat(TensorBytes.toStrings(outputs.get("word__1"))).containsExactly("three", "eight");
                answered.incrementAndGet();
            }
        }
    }
}
