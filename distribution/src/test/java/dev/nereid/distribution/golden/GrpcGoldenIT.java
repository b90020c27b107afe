package dev.nereid.distribution.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.TextFormat;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import io.grpc.Channel;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.stub.MetadataUtils;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compares responses over gRPC with the recorded ones of the reference server. Sends the recorded calls, as far as this
 * server supports their methods and models. Allowed differences are listed in {@code
 * docs/compatibility/deviations-grpc.txt}.
 */
class GrpcGoldenIT {
    private static final List<String> EXAMPLES = List.of("identity", "square", "repeat", "sequence", "dyna_sequence");
    /**
     * Statistics of models without requests since they were loaded: the recorded server had crashed at case 153 and was
     * started again.
     */
    private static final Set<Integer> OF_A_FRESH_SERVER = Set.of(203, 204, 205, 206, 207);

    private static final Metadata.Key<String> SECRET =
            Metadata.Key.of("triton-grpc-protocol-admin-key", Metadata.ASCII_STRING_MARSHALLER);

    @TempDir
    private Path directory;

    /** The record of a server with shared memory, restricted access, and model control. */
    private static final String SPECIAL = "grpc2";

    private final List<String> problems = new ArrayList<>();
    private int same;

    @Test
    void respondsAsTheReference() throws Exception {
        Path record = TestPaths.shared("golden");
        Set<String> absent = new HashSet<>();
        Repository models = models(record, absent);
        Map<Integer, String> accepted = accepted("");
        try (TestServer server = TestServer.open(NereidServer.start(TestServer.of(models)))) {
            ManagedChannel channel = server.grpc();
            for (GoldenCase one : GoldenCase.read(record.resolve("grpc.jsonl"), "grpc")) {
                if (one.isWhole() && isServed(one, absent) && !OF_A_FRESH_SERVER.contains(one.number())) {
                    sendUnrecorded(one.number(), channel);
                    replay(one, channel, accepted);
                }
            }
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }
        accepted.values().forEach(line -> problems.add("not a case that is tried, strike it: " + line));

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(same).isGreaterThan(115);
    }

    /** Sends the requests of a sequence that were made before a case, and that the record leaves out. */
    private static void sendUnrecorded(int number, Channel channel) {
        if (number == 162) {
            send("custom_sequence_int32", "sequence_end", channel);
        } else if (number == 169) {
            send("custom_dyna_sequence_int32", "sequence_start", channel);
        }
    }

    private static void send(String model, String flag, Channel channel) {
        GRPCInferenceServiceGrpc.newBlockingStub(channel)
                .modelInfer(ModelInferRequest.newBuilder()
                        .setModelName(model)
                        .putParameters(
                                "sequence_id",
                                InferParameter.newBuilder().setInt64Param(5).build())
                        .putParameters(
                                flag,
                                InferParameter.newBuilder().setBoolParam(true).build())
                        .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                                .setName("INPUT")
                                .setDatatype("INT32")
                                .addShape(1)
                                .addShape(1))
                        .addRawInputContents(ByteString.copyFrom(new byte[] {1, 0, 0, 0}))
                        .build());
    }

    @Test
    void beginsToCountAsTheReferenceDoes() throws Exception {
        Path record = TestPaths.shared("golden");
        try (TestServer server = TestServer.open(NereidServer.start(TestServer.of(models(record, new HashSet<>()))))) {
            ManagedChannel channel = server.grpc();
            for (GoldenCase one : GoldenCase.read(record.resolve("grpc.jsonl"), "grpc")) {
                if (OF_A_FRESH_SERVER.contains(one.number())) {
                    replay(one, channel, Map.of());
                }
            }
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(same).isEqualTo(OF_A_FRESH_SERVER.size());
    }

    /** Collects the models of the record that this server supports, and records the others. */
    private Repository models(Path record, Set<String> absent) throws IOException {
        Repository models = new Repository(directory);
        for (Path model : list(record.resolve("models"))) {
            if (isServed(model)) {
                models.copyOf(model);
            } else {
                absent.add(model.getFileName().toString());
            }
        }
        return models;
    }

    @Test
    void controlsModelsAsTheReferenceDoes() throws Exception {
        Path record = TestPaths.shared("golden");
        Repository models = new Repository(directory)
                .copyOf(record.resolve("models/simple"))
                .copyOf(record.resolve("models/identity_fp32"));
        Map<Integer, String> accepted = accepted(SPECIAL + ":");
        ServerOptions options = TestServer.of(models).with(o -> o.explicit("identity_fp32"));
        try (TestServer server = TestServer.open(NereidServer.start(options))) {
            replay(record, 1, 21, server, accepted);
        }

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(accepted).as("not cases that are tried, strike them").isEmpty();
        assertThat(same).isEqualTo(18);
    }

    @Test
    void sharesMemoryAsTheReferenceDoes() throws Exception {
        Path record = TestPaths.shared("golden");
        Path segments = Path.of("/dev/shm");
        assumeTrue(Files.isDirectory(segments), "no directory of POSIX shared memory");
        Path segment = segments.resolve("tri_g");
        ByteBuffer content = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
        content.putFloat(1).putFloat(2).putFloat(3).putFloat(4);
        Files.write(segment, content.array());
        Repository models = new Repository(directory).copyOf(record.resolve("models/identity_fp32"));
        try (TestServer server =
                TestServer.open(NereidServer.start(TestServer.of(models).with(o -> o.clientSharedMemory = true)))) {
            replay(record, 22, 52, server);
        } finally {
            Files.delete(segment);
        }

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(same).isEqualTo(31);
    }

    @Test
    void restrictsWhatTheReferenceRestricts() throws Exception {
        Path record = TestPaths.shared("golden");
        Repository models = new Repository(directory)
                .copyOf(record.resolve("models/identity_fp32"))
                .model("probe", Repository.identity(0, "FP32", "[ 1 ]", ""));
        ApiAccess access = ApiAccess.parse(List.of("health,model-repository:admin-key=admin-value"));
        try (TestServer server = TestServer.open(
                NereidServer.start(TestServer.of(models)),
                UnaryOperator.identity(),
                options -> options.access = access)) {
            replay(record, 53, 60, server);
        }

        assertThat(problems).as(String.join("\n\n", problems)).isEmpty();
        assertThat(same).isEqualTo(8);
    }

    private void replay(Path record, int first, int last, TestServer server) throws Exception {
        replay(record, first, last, server, Map.of());
    }

    private void replay(Path record, int first, int last, TestServer server, Map<Integer, String> accepted)
            throws Exception {
        ManagedChannel channel = server.grpc();
        for (GoldenCase one : GoldenCase.read(record.resolve("grpc.jsonl"), SPECIAL)) {
            if (one.number() >= first && one.number() <= last) {
                replay(one, ClientInterceptors.intercept(channel, secret(one.title())), accepted);
            }
        }
        channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
    }

    /** Returns an interceptor that adds the secret named in the title of a case. */
    private static ClientInterceptor secret(String title) {
        Metadata headers = new Metadata();
        Matcher with = Pattern.compile("live with (\\S+-key)").matcher(title);
        if (with.matches()) {
            headers.put(Metadata.Key.of(with.group(1), Metadata.ASCII_STRING_MARSHALLER), "admin-value");
        } else if (title.equals("index with")) {
            headers.put(SECRET, "admin-value");
        } else if (title.equals("live with a wrong value")) {
            headers.put(SECRET, "wrong");
        }
        return MetadataUtils.newAttachHeadersInterceptor(headers);
    }

    private void replay(GoldenCase one, Channel channel, Map<Integer, String> accepted) throws Exception {
        Optional<String> difference = GoldenStream.isStream(one)
                ? GoldenStream.difference(one, channel)
                : GoldenCall.difference(one, channel);
        String excuse = accepted.get(one.number());
        if (excuse != null) {
            accepted.remove(one.number());
        }
        if (difference.isPresent() && excuse == null) {
            problems.add("case " + one + ":\n" + difference.get());
        } else if (difference.isEmpty() && excuse != null) {
            problems.add("no longer differs, strike it: " + excuse);
        } else if (difference.isEmpty()) {
            same++;
        }
    }

    private static boolean isServed(GoldenCase one, Set<String> absent) throws TextFormat.ParseException {
        if (GoldenStream.isStream(one)) {
            return GoldenStream.of(one).requests().stream()
                    .map(ModelInferRequest::getModelName)
                    .noneMatch(absent::contains);
        }
        return GoldenCall.isOurs(one)
                && GoldenCall.model(one).filter(absent::contains).isEmpty();
    }

    /**
     * Returns the lines of the list of accepted differences by the number of their case.
     *
     * @param prefix what begins the numbers of a part of the record
     */
    private static Map<Integer, String> accepted(String prefix) throws IOException {
        Map<Integer, String> lines = new TreeMap<>();
        for (String line : Files.readAllLines(TestPaths.checkout().resolve("docs/compatibility/deviations-grpc.txt"))) {
            if (!line.isBlank() && !line.startsWith("#")) {
                String[] parts = line.split(" ", 3);
                assertThat(parts).as(line).hasSize(3);
                String number = parts[0].substring(parts[0].indexOf(':') + 1);
                if (parts[0].equals(prefix + number)) {
                    assertThat(lines.put(Integer.parseInt(number), line))
                            .as(line)
                            .isNull();
                }
            }
        }
        return lines;
    }

    /** Returns whether a recorded model needs nothing but ONNX Runtime or the example backends. */
    private static boolean isServed(Path model) throws IOException {
        Path file = model.resolve("config.pbtxt");
        if (!Files.exists(file)) {
            return true;
        }
        String config = Files.readString(file);
        return EXAMPLES.stream().anyMatch(backend -> config.contains("backend: \"" + backend + "\""))
                || config.contains("platform: \"onnxruntime_onnx\"");
    }

    private static List<Path> list(Path parent) throws IOException {
        try (Stream<Path> entries = Files.list(parent)) {
            return entries.sorted().toList();
        }
    }
}
