package dev.nereid.distribution;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static dev.nereid.distribution.testing.TensorBytes.ints;
import static dev.nereid.distribution.testing.TensorBytes.strings;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.gson.JsonParser;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.PythonProgram;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Slow and hostile clients of Python models, at the ports of the installed server. */
@Timeout(300)
@Tag("slow")
final class PythonClientsIT {
    private static final int TIMEOUT_SECONDS = 60;

    /** Time within which a model sees that its client has gone, on a busy machine. */
    private static final int CANCELLATION_SECONDS = 15;

    /** Larger than the tensors that come without shared memory where that is used up. */
    private static final int LARGE = (64 << 20) + 1;

    /** Shared memory of a model, for less than a third of the responses that clients leave behind. */
    private static final String SHARED_MEMORY = "512M";

    private static final int CLIENTS_AT_ONCE = 3;
    private static final int ROUNDS = 7;
    private static final int PERIOD = 251;
    private static final int BODY = 4 << 20;

    private static final int WINDOW = 64 << 10;
    private static final int ENDLESS = 100_000;
    private static final int LONG = 10_000;
    private static final int MAX_AHEAD = 1_000;
    private static final int TEXT_BYTES = 1_000;
    private static final int DIGITS = 8;
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

    private static final String BEGIN = """
            import json, os, threading, time
            import numpy as np
            import triton_python_backend_utils as pb_utils

            def array(request, name):
                return pb_utils.get_input_tensor_by_name(request, name).as_numpy()

            def response(values):
                return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", values)])

            def texts(*values):
                return response(np.array(values, np.object_))

            class Model:
                def execute(self, requests):
                    return [self.respond(request) for request in requests]

            """;

    private static final String LARGE_MODEL = """
            class TritonPythonModel(Model):
                def respond(self, request):
                    size, start = array(request, "SIZE")
                    return response(np.resize(((np.arange(251) + start) % 251).astype(np.uint8), size))
            """;

    private static final String SIZE_MODEL = """
            class TritonPythonModel(Model):
                executed = 0
                def respond(self, request):
                    self.executed += 1
                    return response(np.array([array(request, "DATA").size, self.executed], np.int32))
            """;

    /** A negative count is a request for the counters. */
    private static final String STREAM_MODEL = """
            class TritonPythonModel:
                sent = cancelled = ended = 0
                def execute(self, requests):
                    for request in requests:
                        count = int(array(request, "COUNT")[0])
                        sender = request.get_response_sender()
                        if count < 0:
                            sender.send(texts("%d %d %d" % (self.sent, self.cancelled, self.ended)), flags=1)
                        else:
                            threading.Thread(target=self.stream, args=(count, request, sender)).start()
                def stream(self, count, request, sender):
                    for i in range(count):
                        if sender.is_cancelled() and request.is_cancelled():
                            self.cancelled += 1
                            break
                        sender.send(texts(("%08d" % i).ljust(1000, "x")))
                        self.sent += 1
                    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                    self.ended += 1
            """;

    /** Waits until its request is cancelled, but not for ever, and counts that. */
    private static final String WAITING_MODEL = """
            class TritonPythonModel(Model):
                cancelled = 0
                def initialize(self, args):
                    self.started = json.loads(args["model_config"])["parameters"]["started"]["string_value"]
                def respond(self, request):
                    if array(request, "WAIT")[0]:
                        open(self.started, "w").close()
                        end = time.monotonic() + 30
                        while time.monotonic() < end and not request.is_cancelled():
                            time.sleep(0.005)
                        self.cancelled += request.is_cancelled()
                    return response(np.array([self.cancelled], np.int32))
            """;

    private static final String STRICT_MODEL = """
            class TritonPythonModel(Model):
                def respond(self, request):
                    words = [word.decode() for word in array(request, "WORDS")]
                    return texts(str(os.getpid()), str(array(request, "NUMBERS").sum()), *words)
            """;

    private static final String ENVIRONMENT_MODEL = """
            class TritonPythonModel(Model):
                def respond(self, request):
                    return texts(*[os.environ.get(name.decode(), "absent") for name in array(request, "NAMES")])
            """;

    @TempDir
    private static Path directory;

    private static Path started;
    private static InstalledServer server;
    private static int port;
    private static ManagedChannel channel;

    private final List<AutoCloseable> clients = new ArrayList<>();

    @BeforeAll
    static void serve() throws IOException {
        String python = PythonProgram.withNumPy();
        started = directory.resolve("started");
        Repository models = new Repository(directory.resolve("models"));
        String large = input("SIZE", "INT32", 2) + output("UINT8", -1);
        add(models, "large", LARGE_MODEL, large);
        add(models, "other", LARGE_MODEL, large);
        add(models, "size", SIZE_MODEL, input("DATA", "UINT8", -1) + output("INT32", 2));
        String decoupled = "model_transaction_policy { decoupled: true }\n";
        add(models, "stream", STREAM_MODEL, decoupled + input("COUNT", "INT32", 1) + output("STRING", 1));
        String parameter = "parameters { key: \"started\" value { string_value: \"" + started + "\" } }\n";
        add(models, "waiting", WAITING_MODEL, parameter + input("WAIT", "INT32", 1) + output("INT32", 1));
        String strict = input("NUMBERS", "FP32", 4) + input("WORDS", "STRING", -1) + output("STRING", -1);
        add(models, "strict", STRICT_MODEL, strict);
        add(models, "environment", ENVIRONMENT_MODEL, input("NAMES", "STRING", -1) + output("STRING", -1));
        server = InstalledServer.serve(
                Map.of("AWS_SESSION_TOKEN", "passed", "AWS_SECRET_ACCESS_KEY", "secret", "ORDINARY", "inherited"),
                models.directory(),
                "--backend-config=python,executable=" + python,
                "--backend-config=python,shm-limit-byte-size=" + SHARED_MEMORY,
                "--backend-config=python,pass-environment=AWS_SESSION_TOKEN");
        port = URI.create(server.address("HTTP")).getPort();
        // A fixed window: what the client has not read is in the server.
        channel = NettyChannelBuilder.forTarget(server.address("gRPC"))
                .usePlaintext()
                .flowControlWindow(WINDOW)
                .maxInboundMessageSize(2 * LARGE)
                .build();
    }

    private static void add(Repository models, String name, String program, String config) throws IOException {
        models.model(
                name,
                "backend: \"python\"\nmax_batch_size: 0\ninstance_group [ { count: 1 kind: KIND_CPU } ]\n" + config);
        Files.writeString(models.directory().resolve(name).resolve("1/model.py"), BEGIN + program);
    }

    private static String input(String name, String type, int size) {
        return "input [ { name: \"" + name + "\" data_type: TYPE_" + type + " dims: [ " + size + " ] } ]\n";
    }

    private static String output(String type, int size) {
        return "output [ { name: \"OUT\" data_type: TYPE_" + type + " dims: [ " + size + " ] } ]\n";
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            channel.shutdownNow();
            server.close();
        }
    }

    @AfterEach
    void goAway() throws Exception {
        for (AutoCloseable client : clients) {
            client.close();
        }
        Eventually.holds(
                "no tensor memory in use",
                TIMEOUT_SECONDS,
                () -> metrics().contains("\nnereid_tensor_memory_used_bytes 0\n"));
    }

    // Large responses

    @Test
    void aLargeResponseThatIsReadSlowlyOverHttpHoldsUpNobody() throws Exception {
        SlowConnection slow = opened(new SlowConnection(large("large", LARGE, 1).overHttp()));
        assertThat(slow.status()).isEqualTo(200);

        serveOthers();

        slow.bytes(Integer.parseInt(slow.headers.get("inference-header-content-length")));
        int read = 0;
        while (read < LARGE) {
            byte[] part = slow.bytes(Math.min(8 << 20, LARGE - read));
            assertThat(firstDifference(part, 1 + read)).isNegative();
            read += part.length;
            serve("large", 10);
        }
    }

    @Test
    void aLargeResponseThatIsReadLateOverGrpcHoldsUpNobody() throws Exception {
        SlowCall<ModelInferResponse> slow = unary(large("large", LARGE, 1));
        assertThat(slow.begins()).isTrue();

        serveOthers();

        slow.call.request(2);
        byte[] data = slow.next().getRawOutputContents(0).toByteArray();
        assertThat(data).hasSize(LARGE);
        assertThat(firstDifference(data, 1)).isNegative();
        assertThat(slow.end()).isEqualTo(Status.OK);
    }

    @Test
    void clientsThatLeaveLargeResponsesOverHttpLeaveNoMemoryInUse() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            List<SlowConnection> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS_AT_ONCE; i++) {
                all.add(beginLargeOverHttp());
            }
            serve("large", 1_000);
            for (SlowConnection client : all) {
                client.close();
            }
        }
        serve("large", LARGE);
    }

    @Test
    void clientsThatLeaveLargeResponsesOverGrpcLeaveNoMemoryInUse() throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            List<SlowCall<ModelInferResponse>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS_AT_ONCE; i++) {
                all.add(beginLargeOverGrpc());
            }
            serve("large", 1_000);
            all.forEach(SlowCall::close);
        }
        serve("large", LARGE);
    }

    /** The end of a connection is seen a moment later: until then the memory may be used up. */
    private SlowConnection beginLargeOverHttp() {
        List<SlowConnection> begun = new ArrayList<>();
        Eventually.holds("memory for a response", TIMEOUT_SECONDS, () -> {
            try {
                SlowConnection client =
                        opened(new SlowConnection(large("large", LARGE, 1).overHttp()));
                begun.addFirst(client);
                return client.status() == 200;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        return begun.getFirst();
    }

    private SlowCall<ModelInferResponse> beginLargeOverGrpc() {
        List<SlowCall<ModelInferResponse>> begun = new ArrayList<>();
        Eventually.holds("memory for a response", TIMEOUT_SECONDS, () -> {
            begun.addFirst(unary(large("large", LARGE, 1)));
            return begun.getFirst().begins();
        });
        return begun.getFirst();
    }

    private static void serveOthers() throws IOException {
        for (int i = 0; i < 5; i++) {
            serve("large", 100_000);
            serve("other", 100_000);
        }
        serve("large", LARGE);
    }

    /** Another client gets a response from a model over both protocols. */
    private static void serve(String model, int size) throws IOException {
        RawHttpResponse response = exchange(large(model, size, 3).overHttp());
        assertThat(response.status()).isEqualTo(200);
        byte[] data = response.binaryOutputs().get("OUT");
        assertThat(data).hasSize(size);
        assertThat(firstDifference(data, 3)).isNegative();
        data = infer(large(model, size, 4)).getRawOutputContents(0).toByteArray();
        assertThat(data).hasSize(size);
        assertThat(firstDifference(data, 4)).isNegative();
    }

    private static ClientRequest large(String model, int size, int start) {
        return ClientRequest.of(model).input("SIZE", "INT32", ints(size, start), 2);
    }

    private static int firstDifference(byte[] data, int start) {
        byte[] expected = new byte[data.length];
        for (int i = 0; i < data.length; i++) {
            expected[i] = (byte) ((start + i) % PERIOD);
        }
        return Arrays.mismatch(data, expected);
    }

    // Requests that do not arrive

    @Test
    void requestsThatArriveInPartAreNeverExecuted() throws Exception {
        byte[] binary = ClientRequest.of("size")
                .input("DATA", "UINT8", new byte[BODY], BODY)
                .overHttp();
        byte[] json = HttpRequests.json(
                "size", "{\"inputs\":[{\"name\":\"DATA\",\"datatype\":\"UINT8\",\"shape\":[4],\"data\":[1,2,3,4]}]}");
        int before = executed(); // itself the first
        List<HttpConnection> stalled = new ArrayList<>();
        for (byte[] request : List.of(binary, json)) {
            stalled.add(half(request));
            half(request).close();
            half(request).abandon();
            unsent();
            unsent().close();
        }

        for (int i = 1; i <= 10; i++) {
            assertThat(executed()).isEqualTo(before + i);
        }
        stalled.get(0).send(binary, binary.length / 2, binary.length - binary.length / 2);
        assertThat(toInts(stalled.get(0).read().binaryOutputs().get("OUT"))).containsExactly(BODY, before + 11);
        stalled.get(1).send(json, json.length - json.length / 8, json.length / 8);
        assertThat(stalled.get(1).read().text()).contains("[4," + (before + 12) + "]");
    }

    /** Sends a part of a request, which ends in the body. */
    private HttpConnection half(byte[] request) throws IOException {
        HttpConnection client = opened(HttpConnection.to(port));
        client.send(request, 0, request.length > BODY ? request.length / 2 : request.length - request.length / 8);
        return client;
    }

    private static int executed() throws IOException {
        RawHttpResponse response = exchange(
                ClientRequest.of("size").input("DATA", "UINT8", new byte[2], 2).overHttp());
        int[] sizeAndCount = toInts(response.binaryOutputs().get("OUT"));
        assertThat(sizeAndCount[0]).isEqualTo(2);
        return sizeAndCount[1];
    }

    // Streams

    @Test
    void aStreamThatIsNotReadHoldsBackItsResponsesAndIsCancelled() throws Exception {
        Counters before = counters();
        SlowCall<ModelStreamInferResponse> slow = stream(ENDLESS);
        awaitPause(before);
        for (int i = 0; i < 5; i++) {
            SlowCall<ModelStreamInferResponse> other = stream(3);
            other.call.request(4);
            for (int text = 0; text < 3; text++) {
                checkText(text, text(other.next()));
            }
            assertThat(other.end()).isEqualTo(Status.OK);
        }
        assertThat(counters().sent - before.sent).isBetween(1 + 15, MAX_AHEAD);

        slow.close();

        awaitCancellation(before, 6);
        assertThat(counters().sent - before.sent).isLessThanOrEqualTo(MAX_AHEAD);
    }

    @Test
    void aStreamThatIsReadSlowlyOverGrpcIsComplete() throws Exception {
        Counters before = counters();
        SlowCall<ModelStreamInferResponse> slow = stream(LONG);
        awaitPause(before);
        for (int i = 0; i < 500; i++) {
            slow.call.request(1);
            checkText(i, text(slow.next()));
            if (i % 20 == 0) {
                assertThat(counters().sent - before.sent).isBetween(i, i + MAX_AHEAD);
            }
        }

        slow.call.request(Integer.MAX_VALUE);

        for (int i = 500; i < LONG; i++) {
            checkText(i, text(slow.next()));
        }
        assertThat(slow.end()).isEqualTo(Status.OK);
        assertThat(slow.messages).isEmpty();
    }

    @Test
    void generateStreamDeliversEvents() throws Exception {
        SlowConnection client = generateStream(3);
        assertThat(client.status()).isEqualTo(200);
        assertThat(client.headers.get("content-type")).startsWith("text/event-stream");

        for (int i = 0; i < 3; i++) {
            checkText(i, client.event());
        }

        assertThat(client.isAtEnd()).isTrue();
    }

    @Test
    void generateStreamDeliversAllEventsToASlowClient() throws Exception {
        Counters before = counters();
        SlowConnection slow = generateStream(LONG);
        assertThat(slow.status()).isEqualTo(200);
        awaitPause(before);
        assertThat(counters().sent - before.sent).isLessThan(LONG);
        for (int i = 0; i < 500; i++) {
            checkText(i, slow.event());
            if (i % 20 == 0) {
                counters();
            }
        }

        for (int i = 500; i < LONG; i++) {
            checkText(i, slow.event());
        }

        assertThat(slow.isAtEnd()).isTrue();
    }

    @Test
    void generateStreamIsCancelledWhenItsClientGoes() throws Exception {
        Counters before = counters();
        SlowConnection slow = generateStream(ENDLESS);
        assertThat(slow.status()).isEqualTo(200);
        awaitPause(before);

        slow.close();

        awaitCancellation(before, 1);
        assertThat(counters().sent - before.sent).isLessThan(ENDLESS);
    }

    private SlowConnection generateStream(int count) throws IOException {
        byte[] body = ("{\"COUNT\":" + count + "}").getBytes(StandardCharsets.UTF_8);
        return opened(new SlowConnection(HttpRequests.post("/v2/models/stream/generate_stream", body)));
    }

    /** Waits until the model has sent nothing for a while, which a slow client makes it do. */
    private static void awaitPause(Counters before) {
        long[] last = {before.sent, System.nanoTime()};
        Eventually.holds("a pause", TIMEOUT_SECONDS, () -> {
            long sent = counters().sent;
            if (sent != last[0]) {
                last[0] = sent;
                last[1] = System.nanoTime();
            }
            return sent > before.sent && System.nanoTime() - last[1] > QUIET_NANOS;
        });
    }

    private static void awaitCancellation(Counters before, int ended) {
        Eventually.holds(
                "the streams have ended", CANCELLATION_SECONDS, () -> counters().ended == before.ended + ended);
        assertThat(counters().cancelled).as("cancelled streams").isEqualTo(before.cancelled + 1);
    }

    private static Counters counters() {
        try {
            byte[] body = "{\"COUNT\":-1}".getBytes(StandardCharsets.UTF_8);
            RawHttpResponse response = exchange(HttpRequests.post("/v2/models/stream/generate", body));
            assertThat(response.status()).isEqualTo(200);
            String[] numbers = JsonParser.parseString(response.text())
                    .getAsJsonObject()
                    .get("OUT")
                    .getAsString()
                    .split(" ", -1);
            return new Counters(
                    Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1]), Integer.parseInt(numbers[2]));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void checkText(int expected, String text) {
        assertThat(text).hasSize(TEXT_BYTES);
        assertThat(Integer.parseInt(text.substring(0, DIGITS))).isEqualTo(expected);
    }

    private static String text(ModelStreamInferResponse message) {
        assertThat(message.getErrorMessage()).isEmpty();
        return TensorBytes.toStrings(
                        message.getInferResponse().getRawOutputContents(0).toByteArray())
                .getFirst();
    }

    // Clients that go during an execution

    @ParameterizedTest
    @EnumSource
    void anExecutionSeesThatItsClientHasGone(Departure departure) throws Exception {
        int before = cancelledExecutions();
        Files.deleteIfExists(started);
        ClientRequest request = ClientRequest.of("waiting").input("WAIT", "INT32", ints(1), 1);
        AutoCloseable client = switch (departure) {
            case CLOSE -> sent(request);
            case RESET -> sent(request)::abandon;
            case CANCEL -> unary(request);
        };
        Eventually.holds("executed", TIMEOUT_SECONDS, () -> Files.exists(started));

        long start = System.nanoTime();
        client.close();

        assertThat(cancelledExecutions()).isEqualTo(before + 1);
        assertThat(TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start)).isLessThan(CANCELLATION_SECONDS);
    }

    private HttpConnection sent(ClientRequest request) throws IOException {
        HttpConnection client = opened(HttpConnection.to(port));
        byte[] bytes = request.overHttp();
        client.send(bytes, 0, bytes.length);
        return client;
    }

    /** Waits for the instance. */
    private static int cancelledExecutions() throws IOException {
        RawHttpResponse response = exchange(
                ClientRequest.of("waiting").input("WAIT", "INT32", ints(0), 1).overHttp());
        return toInts(response.binaryOutputs().get("OUT"))[0];
    }

    // Malformed requests

    static Stream<Arguments> malformed() {
        byte[] four = floats(1, 2, 3, 4);
        byte[] words = strings("a", "b");
        String numbers = "\"name\":\"NUMBERS\",\"datatype\":\"FP32\",\"shape\":[4],\"data\":[1,2,3,4]";
        String good = "\"name\":\"WORDS\",\"datatype\":\"BYTES\",\"shape\":[2],\"data\":[\"a\",\"b\"]";
        return Stream.of(
                json("shape", numbers.replace("[4],\"data\":[1,2,3,4]", "[5],\"data\":[1,2,3,4,5]"), good),
                json("dimensions", numbers.replace("[4]", "[2,2]"), good),
                json("too few elements", numbers.replace("3,4]", "3]"), good),
                json("too many elements", numbers.replace("3,4]", "3,4,5]"), good),
                json("datatype", numbers.replace("FP32", "INT32"), good),
                json("unknown datatype", numbers.replace("FP32", "FP31"), good),
                json("text for a number", numbers.replace("3,4]", "3,\"4\"]"), good),
                json("number for a text", numbers, good.replace("\"b\"]", "2]")),
                json("object for a text", numbers, good.replace("\"b\"]", "{}]")),
                json("negative dimension", numbers, good.replace("[2]", "[-2]")),
                json("huge shape", numbers, good.replace("[2]", "[4611686018427387904]")),
                json("shape beyond 64 bits", numbers, good.replace("[2]", "[4294967296,4294967296]")),
                json("input missing", numbers),
                json("input twice", numbers, good, numbers),
                json("unknown input", numbers, good.replace("WORDS", "WORLDS")),
                json("no JSON", numbers, good + "}"),
                binary("too short", Arrays.copyOf(four, 12), 4, words, 2),
                binary("too long", Arrays.copyOf(four, 20), 4, words, 2),
                binary("no bytes", new byte[0], 4, words, 2),
                binary("shape in bytes", floats(1, 2, 3, 4, 5), 5, words, 2),
                binary("huge shape in bytes", four, Long.MAX_VALUE, words, 2),
                binary("truncated text", four, 4, Arrays.copyOf(words, words.length - 1), 2),
                binary("truncated length of a text", four, 4, Arrays.copyOf(words, 7), 2),
                binary("length of a text beyond the tensor", four, 4, textOfLength(1_000), 1),
                binary("length of a text of 2 GiB", four, 4, textOfLength(Integer.MAX_VALUE), 1),
                binary("length of a text of 4 GiB", four, 4, textOfLength(-1), 1),
                binary("too few texts", four, 4, words, 3),
                binary("too many texts", four, 4, words, 1),
                binary("huge number of texts", four, 4, words, 1L << 62),
                claimed("more bytes than the body", "17"),
                claimed("huge bytes", "9223372036854775807"),
                claimed("more than 64 bits", "18446744073709551632"),
                claimed("negative bytes", "-16"),
                Arguments.of(
                        "huge header",
                        HttpRequests.post(
                                "/v2/models/strict/infer", new byte[8], "Inference-Header-Content-Length: 2147483647")),
                Arguments.of(
                        "huge body",
                        HttpRequests.postOf(
                                "/v2/models/strict/infer", new byte[8], "Content-Length: 99999999999999999999")),
                Arguments.of(
                        "huge chunk",
                        HttpRequests.postOf(
                                "/v2/models/strict/infer",
                                "fffffffffffffffff\r\nx".getBytes(StandardCharsets.UTF_8),
                                "Transfer-Encoding: chunked")));
    }

    private static Arguments json(String title, String... inputs) {
        return Arguments.of(title, HttpRequests.json("strict", "{\"inputs\":[{" + String.join("},{", inputs) + "}]}"));
    }

    private static Arguments binary(String title, byte[] numbers, long size, byte[] words, long count) {
        return Arguments.of(title, strict(numbers, size, words, count).overHttp());
    }

    private static Arguments claimed(String title, String size) {
        byte[] request = strict(floats(1, 2, 3, 4), 4, strings("a"), 1).overHttp();
        String text = new String(request, StandardCharsets.ISO_8859_1);
        String body = text.substring(text.indexOf("{\"inputs\""));
        String json = body.substring(0, body.lastIndexOf('}') + 1);
        String changed = json.replaceFirst("\"binary_data_size\":16", "\"binary_data_size\":" + size);
        return Arguments.of(
                title,
                HttpRequests.post(
                        "/v2/models/strict/infer",
                        (changed + body.substring(json.length())).getBytes(StandardCharsets.ISO_8859_1),
                        "Inference-Header-Content-Length: " + changed.length()));
    }

    private static byte[] textOfLength(int length) {
        return ByteBuffer.allocate(6)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(length)
                .put((byte) 'a')
                .array();
    }

    private static ClientRequest strict(byte[] numbers, long size, byte[] words, long count) {
        return ClientRequest.of("strict")
                .input("NUMBERS", "FP32", numbers, size)
                .input("WORDS", "BYTES", words, count);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("malformed")
    void aMalformedRequestIsRefusedAndItsModelServes(String title, byte[] request) throws Exception {
        String process = process();

        RawHttpResponse response = exchange(request);

        assertThat(response.status()).as(title).isBetween(400, 599);
        assertThat(process()).as("the process of the model").isEqualTo(process);
    }

    @Test
    void malformedRequestsOverGrpcAreRefusedAndTheirModelServes() throws Exception {
        String process = process();
        byte[] four = floats(1, 2, 3, 4);
        byte[] words = strings("a", "b");
        List<ClientRequest> all = List.of(
                strict(Arrays.copyOf(four, 12), 4, words, 2),
                strict(floats(1, 2, 3, 4, 5), 5, words, 2),
                strict(four, 1L << 62, words, 2),
                strict(four, -4, words, 2),
                strict(four, 4, Arrays.copyOf(words, words.length - 1), 2),
                strict(four, 4, Arrays.copyOf(words, 7), 2),
                strict(four, 4, textOfLength(-1), 1),
                strict(four, 4, words, 1L << 62),
                ClientRequest.of("strict").input("NUMBERS", "INT32", four, 4).input("WORDS", "BYTES", words, 2));

        assertThat(all).allSatisfy(request -> {
            StatusRuntimeException error = catchThrowableOfType(StatusRuntimeException.class, () -> infer(request));
            assertThat(error).isNotNull();
            assertThat(error.getStatus().getCode()).isEqualTo(Status.Code.INVALID_ARGUMENT);
            assertThat(process()).isEqualTo(process);
        });
    }

    /** A good request, which the model serves. Returns the id of its process. */
    private static String process() throws IOException {
        RawHttpResponse response =
                exchange(strict(floats(1, 2, 3, 4), 4, strings("a", "bc"), 2).overHttp());
        assertThat(response.status()).isEqualTo(200);
        List<String> texts = TensorBytes.toStrings(response.binaryOutputs().get("OUT"));
        assertThat(texts.subList(1, texts.size())).containsExactly("10.0", "a", "bc");
        return texts.getFirst();
    }

    // The environment

    @Test
    void aProcessGetsTheSecretVariablesThatAreNamedAlone() throws Exception {
        byte[] names = strings("AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY", "ORDINARY");

        RawHttpResponse response = exchange(ClientRequest.of("environment")
                .input("NAMES", "BYTES", names, 3)
                .overHttp());

        assertThat(TensorBytes.toStrings(response.binaryOutputs().get("OUT")))
                .containsExactly("passed", "absent", "inherited");
    }

    // Clients

    private <C extends AutoCloseable> C opened(C client) {
        clients.add(client);
        return client;
    }

    private static RawHttpResponse exchange(byte[] request) throws IOException {
        try (HttpConnection client = HttpConnection.to(port)) {
            return client.exchange(request);
        }
    }

    private static ModelInferResponse infer(ClientRequest request) {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                .modelInfer(request.overGrpc());
    }

    private SlowCall<ModelInferResponse> unary(ClientRequest request) {
        SlowCall<ModelInferResponse> call = unsent();
        call.send(request.overGrpc());
        return call;
    }

    /** Begins a call without its request. */
    private SlowCall<ModelInferResponse> unsent() {
        return opened(new SlowCall<>(GRPCInferenceServiceGrpc.getModelInferMethod()));
    }

    private SlowCall<ModelStreamInferResponse> stream(int count) {
        SlowCall<ModelStreamInferResponse> call =
                opened(new SlowCall<>(GRPCInferenceServiceGrpc.getModelStreamInferMethod()));
        call.send(ClientRequest.of("stream")
                .input("COUNT", "INT32", ints(count), 1)
                .overGrpc());
        return call;
    }

    private static int[] toInts(byte[] bytes) {
        int[] values = new int[bytes.length / Integer.BYTES];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(values);
        return values;
    }

    private static String metrics() {
        try {
            return server.metrics("GET", "/metrics").body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    /** How a client leaves. */
    enum Departure {
        CLOSE,
        RESET,
        CANCEL
    }

    /**
     * The counts of the decoupled model since its start.
     *
     * @param sent the texts of all streams
     * @param cancelled the streams that saw that their client had gone
     * @param ended the streams that sent their final response
     */
    private record Counters(int sent, int cancelled, int ended) {}

    /** A call of gRPC that reads what the test requests. Safe for use by any thread. */
    private static final class SlowCall<R> extends ClientCall.Listener<R> implements AutoCloseable {
        final ClientCall<ModelInferRequest, R> call;
        final BlockingQueue<R> messages = new LinkedBlockingQueue<>();
        private final CompletableFuture<Boolean> begin = new CompletableFuture<>();
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        SlowCall(MethodDescriptor<ModelInferRequest, R> method) {
            call = channel.newCall(method, CallOptions.DEFAULT);
            call.start(this, new Metadata());
        }

        void send(ModelInferRequest request) {
            call.sendMessage(request);
            call.halfClose();
        }

        @Override
        public void onHeaders(Metadata headers) {
            begin.complete(true);
        }

        @Override
        public void onMessage(R message) {
            messages.add(message);
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            begin.complete(false);
            end.complete(status);
        }

        /** Waits for the response; returns false for an error. */
        boolean begins() {
            return begin.orTimeout(TIMEOUT_SECONDS, TimeUnit.SECONDS).join();
        }

        R next() throws InterruptedException {
            R message = messages.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            assertThat(message).as("a message").isNotNull();
            return message;
        }

        Status end() throws Exception {
            return end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }

        @Override
        public void close() {
            call.cancel("the client goes", null);
        }
    }

    /** A connection of HTTP that reads what the test reads, with a small window. Confined to the test's thread. */
    private static final class SlowConnection implements AutoCloseable {
        final Map<String, String> headers = new HashMap<>();
        private final Socket socket = new Socket();
        private final InputStream in;
        private int leftOfChunk;

        SlowConnection(byte[] request) throws IOException {
            socket.setReceiveBufferSize(WINDOW);
            socket.setSoTimeout((int) TimeUnit.SECONDS.toMillis(TIMEOUT_SECONDS));
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            in = new BufferedInputStream(socket.getInputStream());
            socket.getOutputStream().write(request);
        }

        /** Waits for the response's header and reads it; once. */
        int status() throws IOException {
            String status = line();
            for (String line = line(); !line.isEmpty(); line = line()) {
                int colon = line.indexOf(':');
                headers.put(
                        line.substring(0, colon).toLowerCase(Locale.ROOT),
                        line.substring(colon + 1).strip());
            }
            return Integer.parseInt(status.split(" ", 3)[1]);
        }

        byte[] bytes(int count) throws IOException {
            byte[] bytes = in.readNBytes(count);
            assertThat(bytes).hasSize(count);
            return bytes;
        }

        /** Reads an event, and returns the text in it. */
        String event() throws IOException {
            ByteArrayOutputStream event = new ByteArrayOutputStream();
            boolean lineEnd = false;
            for (int next = inChunks(); !(next == '\n' && lineEnd); next = inChunks()) {
                if (next < 0) {
                    throw new EOFException("the events end after '" + event.toString(StandardCharsets.UTF_8) + "'");
                }
                lineEnd = next == '\n';
                event.write(next);
            }
            String data = event.toString(StandardCharsets.UTF_8);
            assertThat(data).startsWith("data: ").endsWith("\n");
            return JsonParser.parseString(data.substring("data: ".length()))
                    .getAsJsonObject()
                    .get("OUT")
                    .getAsString();
        }

        /** Returns whether the response is complete. */
        boolean isAtEnd() throws IOException {
            return inChunks() < 0;
        }

        private int inChunks() throws IOException {
            if (leftOfChunk == 0) {
                leftOfChunk = Integer.parseInt(line(), 16);
                if (leftOfChunk == 0) {
                    assertThat(line()).isEmpty();
                    return -1;
                }
            }
            int next = in.read();
            if (next < 0) {
                throw new EOFException("closed within a chunk");
            }
            if (--leftOfChunk == 0) {
                assertThat(line()).isEmpty();
            }
            return next;
        }

        private String line() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            for (int next = in.read(); next != '\n'; next = in.read()) {
                if (next < 0) {
                    throw new EOFException("closed after '" + line.toString(StandardCharsets.UTF_8) + "'");
                }
                line.write(next);
            }
            return line.toString(StandardCharsets.UTF_8).stripTrailing();
        }

        /** Resets the connection where the response is not read to its end. */
        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
