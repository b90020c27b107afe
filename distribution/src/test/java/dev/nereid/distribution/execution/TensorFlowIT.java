package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.nereid.api.ModelControl;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.MemoryUse;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TensorFlowModels;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Models of TensorFlow over both protocols, beside ONNX Runtime: in sequences, with states, in ensembles, reloaded. */
@Tag("slow")
class TensorFlowIT {
    private static final int CLASSES = 10;
    private static final int PIXELS = 64;
    private static final float INK = 16;
    private static final double MIN_ACCURACY = 0.95;
    private static final int RELOADS = 50;
    private static final int CLIENTS = 4;
    private static final double MAX_GROWTH = 0.05;
    private static final long TIMEOUT_SECONDS = 120;

    /** The document's example of the strategy Oldest, as it is. */
    private static final String OLDEST = """
            name: "oldest_stateful_model"
            platform: "tensorflow_savedmodel"
            max_batch_size: 2
            sequence_batching {
              max_sequence_idle_microseconds: 5000000
              oldest
                {
                  max_candidate_sequences: 4
                }
              control_input [
                {
                  name: "START"
                  control [
                    {
                      kind: CONTROL_SEQUENCE_START
                      fp32_false_true: [ 0, 1 ]
                    }
                  ]
                },
                {
                  name: "END"
                  control [
                    {
                      kind: CONTROL_SEQUENCE_END
                      fp32_false_true: [ 0, 1 ]
                    }
                  ]
                },
                {
                  name: "CORRID"
                  control [
                    {
                      kind: CONTROL_SEQUENCE_CORRID
                      data_type: TYPE_UINT64
                    }
                  ]
                }
              ]
            }
            input [
              {
                name: "INPUT"
                data_type: TYPE_FP32
                dims: [ 100, 100 ]
              }
            ]
            output [
              {
                name: "OUTPUT"
                data_type: TYPE_FP32
                dims: [ 10 ]
              }
            ]
            """;

    private static final String ACCUMULATOR = """
            platform: "tensorflow_savedmodel"
            max_batch_size: 4
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }
            sequence_batching {
              max_sequence_idle_microseconds: 900000000
              %s
              state { input_name: "STATE_IN" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }
            }
            instance_group { count: 2 kind: KIND_CPU }
            """;

    private static final String ENSEMBLE = """
            platform: "ensemble"
            max_batch_size: 4
            input { name: "IMAGE" data_type: TYPE_FP32 dims: [ 64 ] }
            output { name: "BY_TENSORFLOW" data_type: TYPE_FP32 dims: [ 10 ] }
            output { name: "BY_ONNX" data_type: TYPE_FP32 dims: [ 10 ] }
            ensemble_scheduling {
              step { model_name: "digits_tf" model_version: -1
                input_map { key: "pixels" value: "IMAGE" } output_map { key: "scores" value: "BY_TENSORFLOW" } }
              step { model_name: "digits_onnx" model_version: -1
                input_map { key: "pixels" value: "IMAGE" } output_map { key: "scores" value: "BY_ONNX" } }
            }
            """;

    @TempDir
    private static Path directory;

    @RegisterExtension
    private static final ServerExtension server =
            new ServerExtension(() -> TestServer.of(models()).with(o -> o.explicit("*")));

    private static List<int[]> digits;

    private volatile boolean ended;

    private static Repository models() throws IOException, InterruptedException {
        TensorFlowModels.make(directory);
        Path accumulator = directory.resolve("accumulator_tf");
        Repository models = new Repository(directory);
        for (String name : List.of("direct", "oldest")) {
            Path copy =
                    Files.createDirectory(directory.resolve("copies-" + name)).resolve(name);
            Files.createDirectories(copy.getParent());
            new Repository(copy.getParent()).copyOf(accumulator);
            Files.move(copy.getParent().resolve("accumulator_tf"), directory.resolve(name));
            Files.delete(copy.getParent());
        }
        models.model("direct", ACCUMULATOR.formatted("direct { }"));
        models.model("oldest", ACCUMULATOR.formatted("oldest { max_candidate_sequences: 8 }"));
        models.model("oldest_stateful_model", OLDEST);
        models.model("both", ENSEMBLE);
        try (var lines = Files.lines(TestPaths.checkout().resolve("examples/training/digits_test.csv"))) {
            digits = lines.map(line -> Arrays.stream(line.split(","))
                            .mapToInt(Integer::parseInt)
                            .toArray())
                    .toList();
        }
        return models;
    }

    private static GRPCInferenceServiceBlockingStub grpc() {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static float[] pixels(List<int[]> images) {
        float[] pixels = new float[images.size() * PIXELS];
        for (int i = 0; i < images.size(); i++) {
            for (int k = 0; k < PIXELS; k++) {
                pixels[i * PIXELS + k] = images.get(i)[k + 1] / INK;
            }
        }
        return pixels;
    }

    private static ClientRequest images(String model, String input, List<int[]> images) {
        return ClientRequest.of(model).input(input, "FP32", TensorBytes.floats(pixels(images)), images.size(), PIXELS);
    }

    private static int right(List<int[]> images, float[] scores) {
        int right = 0;
        for (int i = 0; i < images.size(); i++) {
            float[] row = Arrays.copyOfRange(scores, i * CLASSES, (i + 1) * CLASSES);
            right += TensorBytes.indexOfLargest(row) == images.get(i)[0] ? 1 : 0;
        }
        return right;
    }

    private static float[] overGrpc(ClientRequest request) {
        return TensorBytes.toFloats(
                grpc().modelInfer(request.overGrpc()).getRawOutputContents(0).toByteArray());
    }

    private static float[] overHttp(HttpConnection http, ClientRequest request, String output) throws IOException {
        RawHttpResponse response = http.exchange(request.overHttp());
        assertThat(response.status()).as(response::text).isEqualTo(200);
        return TensorBytes.toFloats(response.binaryOutputs().get(output));
    }

    /** Trained in this test's build, served from its files alone: the configuration is completed from the signature. */
    @Test
    void recognizesDigitsOverBothProtocolsAndAsOnnxRuntimeDoes() throws IOException {
        int overHttp = 0;
        int overGrpc = 0;
        try (HttpConnection http = server.http()) {
            for (int from = 0; from < digits.size(); from += 4) { // the completed max_batch_size
                List<int[]> images = digits.subList(from, Math.min(from + 4, digits.size()));
                float[] scores = overHttp(http, images("digits_tf", "pixels", images), "scores");
                overHttp += right(images, scores);
                overGrpc += right(images, overGrpc(images("digits_tf", "pixels", images)));
                float[] ofOnnx = overGrpc(images("digits_onnx", "pixels", images));
                assertThat(scores).hasSameSizeAs(ofOnnx);
                for (int i = 0; i < scores.length; i++) {
                    assertThat(scores[i]).isCloseTo(ofOnnx[i], within(1e-4f));
                }
            }
        }
        assertThat((double) overHttp / digits.size()).isGreaterThanOrEqualTo(MIN_ACCURACY);
        assertThat(overGrpc).isEqualTo(overHttp);
    }

    @Test
    void completesTheConfigurationFromTheSignature() throws IOException {
        try (HttpConnection http = server.http()) {
            String config = http.exchange("GET /v2/models/digits_tf/config HTTP/1.1\r\nHost: x\r\n\r\n"
                            .getBytes(java.nio.charset.StandardCharsets.US_ASCII))
                    .text();

            assertThat(config)
                    .contains("\"platform\":\"tensorflow_savedmodel\"")
                    .contains("\"backend\":\"tensorflow\"")
                    .contains("\"max_batch_size\":4")
                    .contains("\"dynamic_batching\"")
                    .contains("\"default_model_filename\":\"model.savedmodel\"")
                    .containsPattern("\"instance_group\":\\[\\{[^]]*\"count\":2");
        }
    }

    @Test
    void servesTheDocumentsExampleOfTheStrategyOldest() {
        float[] input = new float[100 * 100];
        Arrays.fill(input, 0.5f);
        for (int turn = 0; turn < 3; turn++) {
            for (long id : new long[] {7, 1_000_001, 3}) {
                float[] output = overGrpc(ClientRequest.of("oldest_stateful_model")
                        .input("INPUT", "FP32", TensorBytes.floats(input), 1, 100, 100)
                        .inSequence(id, turn == 0, turn == 2));

                assertThat(output).hasSize(10);
                assertThat(output[0]).isCloseTo(5000, within(0.5f));
                assertThat(output[1]).as("START").isEqualTo(turn == 0 ? 1 : 0);
                assertThat(output[2]).as("END").isEqualTo(turn == 2 ? 1 : 0);
                assertThat(output[3]).as("CORRID").isEqualTo((float) id);
            }
        }
    }

    @Test
    void theServerKeepsTheStateOfSequences() {
        for (String model : List.of("direct", "oldest")) {
            float[] sums = new float[6];
            for (int turn = 0; turn < 5; turn++) {
                for (int id = 1; id <= 5; id++) {
                    sums[id] += id * turn;
                    float[] output = overGrpc(ClientRequest.of(model)
                            .input("INPUT", "FP32", TensorBytes.floats(id * turn), 1, 1)
                            .inSequence(id, turn == 0, turn == 4));
                    assertThat(output)
                            .as("%s, sequence %d, turn %d", model, id, turn)
                            .containsExactly(sums[id]);
                }
            }
        }
    }

    @Test
    void isAStepOfAnEnsembleBesideOnnxRuntime() throws IOException {
        List<int[]> images = digits.subList(0, 3);
        try (HttpConnection http = server.http()) {
            RawHttpResponse response =
                    http.exchange(images("both", "IMAGE", images).overHttp());
            assertThat(response.status()).as(response::text).isEqualTo(200);
            float[] tensorFlow = TensorBytes.toFloats(response.binaryOutputs().get("BY_TENSORFLOW"));
            float[] onnx = TensorBytes.toFloats(response.binaryOutputs().get("BY_ONNX"));
            assertThat(tensorFlow).hasSize(30);
            for (int i = 0; i < 30; i++) {
                assertThat(tensorFlow[i]).isCloseTo(onnx[i], within(1e-4f));
            }
        }
    }

    /** An identity graph returns the memory of its input, here poisoned as soon as it is freed. */
    @Test
    void outputsThatLieInInputsStayIntact() throws Exception {
        Path repository = Files.createDirectory(directory.resolve("echo-repository"));
        new Repository(repository).copyOf(directory.resolve("echo_tf"));
        try (TestServer poisoned = TestServer.open(NereidServer.start(
                        TestServer.of(new Repository(repository)).with(o -> o.poisonFreed = true)));
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
        }
    }

    private static void echo(TestServer poisoned, float client) throws IOException {
        float[] values = new float[1 << 14];
        try (HttpConnection http = poisoned.http()) {
            for (int turn = 0; turn < 100; turn++) {
                Arrays.fill(values, client + 10 * turn);
                ClientRequest request =
                        ClientRequest.of("echo_tf").input("x", "FP32", TensorBytes.floats(values), 1, values.length);
                assertThat(overHttp(http, request, "y")).isEqualTo(values);
            }
        }
    }

    @Test
    void aMissingLibraryIsNamedAndTheServerServesTheRest() throws Exception {
        Path plugins = pluginWithoutLibrary("plugins-without-library").getParent();
        Path repository = Files.createDirectory(directory.resolve("rest-repository"));
        Repository models = new Repository(repository)
                .copyOf(directory.resolve("variable"))
                .model("echo", Repository.identity(8, "INT32", "[2]", ""));
        try (TestServer rest = TestServer.open(NereidServer.start(ServerOptions.of(models.directory())
                .withPlugins(plugins, TestPaths.plugins()[1])
                .with(o -> o.exitOnError = false)))) {
            assertThat(rest.server().models().index())
                    .filteredOn(model -> model.name().equals("variable"))
                    .singleElement()
                    .satisfies(model -> assertThat(model.reason())
                            .contains("TensorFlow could not be loaded: libtensorflow_cc.so.2: missing (expected: ")
                            .doesNotContain("\n"));
            echoes(rest);
        }
    }

    /** The jars of the installed plugin, without the packed library. */
    private static Path pluginWithoutLibrary(String plugins) throws IOException {
        Path plugin = Files.createDirectories(directory.resolve(plugins).resolve("tensorflow"));
        try (Stream<Path> jars = Files.list(TestPaths.plugins()[0].resolve("tensorflow"))) {
            for (Path jar : jars.filter(Files::isRegularFile).toList()) {
                Files.copy(jar, plugin.resolve(jar.getFileName()));
            }
        }
        return plugin;
    }

    private static void echoes(TestServer rest) throws IOException {
        try (HttpConnection http = rest.http()) {
            ClientRequest request = ClientRequest.of("echo").input("INPUT0", "INT32", TensorBytes.ints(1, 2), 1, 2);
            assertThat(http.exchange(request.overHttp()).status()).isEqualTo(200);
        }
    }

    @Test
    void anotherTensorFlowInARunningServerIsRefusedAndTheServerServesTheRest() throws Exception {
        Path plugin = pluginWithoutLibrary("plugins-replaced");
        Files.createSymbolicLink(plugin.resolve("natives"), TestPaths.plugins()[0].resolve("tensorflow/natives"));
        Path repository = Files.createDirectory(directory.resolve("replaced-repository"));
        Repository models = new Repository(repository).copyOf(directory.resolve("variable"));
        Files.move(repository.resolve("variable"), repository.resolve("late"));
        models.copyOf(directory.resolve("variable")).model("echo", Repository.identity(8, "INT32", "[2]", ""));
        try (TestServer rest = TestServer.open(NereidServer.start(ServerOptions.of(models.directory())
                .withPlugins(plugin.getParent(), TestPaths.plugins()[1])
                .with(o -> o.explicit("variable", "echo"))))) {
            addsVariable(rest);

            Files.move(plugin, directory.resolve("plugin-before"));
            Files.move(pluginOfAnotherTensorFlow(), plugin);

            assertThatThrownBy(() -> load(rest.server(), "late"))
                    .rootCause()
                    .message()
                    .matches("(?s).*another TensorFlow is loaded in this process, from tensorflow-\\S+ \\(expected:"
                            + " tensorflow-\\S+\\): restart the server to use this one.*");
            assertThat(rest.server().models().index())
                    .filteredOn(model -> model.name().equals("late"))
                    .singleElement()
                    .satisfies(model -> assertThat(model.reason())
                            .contains("TensorFlow could not be loaded: another TensorFlow is loaded in this process")
                            .doesNotContain("\n"));
            addsVariable(rest);
            echoes(rest);
        }
    }

    private static Path pluginOfAnotherTensorFlow() throws IOException {
        Path plugin = pluginWithoutLibrary("plugins-next");
        Path jar;
        try (Stream<Path> jars = Files.list(plugin)) {
            jar = jars.filter(file -> file.getFileName().toString().startsWith("nereid-"))
                    .findFirst()
                    .orElseThrow();
        }
        write(jar, "version.txt", false);
        write(
                Files.createDirectory(plugin.resolve("natives"))
                        .resolve("tensorflow-core-native-2.19-linux-x86_64.jar"),
                "org/tensorflow/internal/c_api/linux-x86_64/libtensorflow_cc.so.2",
                true);
        return plugin;
    }

    /** Adds an entry to a jar. */
    private static void write(Path jar, String entry, boolean isNew) throws IOException {
        try (FileSystem zip = FileSystems.newFileSystem(jar, isNew ? Map.of("create", "true") : Map.of())) {
            Path file = zip.getPath("/" + entry);
            Files.createDirectories(file.toAbsolutePath().getParent());
            Files.writeString(file, "another version");
        }
    }

    private static void addsVariable(TestServer rest) throws IOException {
        try (HttpConnection http = rest.http()) {
            float[] sums = overHttp(
                    http, ClientRequest.of("variable").input("x", "FP32", TensorBytes.floats(1, 1, 1, 1), 1, 4), "sum");
            assertThat(sums).containsExactly(2, 3, 4, 5);
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
            load(server.server(), "digits_tf");
        }
    }

    private static void load(NereidServer on, String model) throws Exception {
        ModelControl.Load load = new ModelControl.Load(model, Optional.empty(), Map.of()).forced();
        on.control().load(load).toCompletableFuture().get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private void client(boolean overHttp, AtomicLong answered) throws IOException {
        List<int[]> images = digits.subList(0, 4);
        int expected = -1;
        try (HttpConnection http = server.http()) {
            while (!ended) {
                ClientRequest request = images("digits_tf", "pixels", images);
                float[] scores = overHttp ? overHttp(http, request, "scores") : overGrpc(request);
                int right = right(images, scores);
                assertThat(expected < 0 || right == expected).isTrue();
                expected = right;
                answered.incrementAndGet();
            }
        }
    }
}
