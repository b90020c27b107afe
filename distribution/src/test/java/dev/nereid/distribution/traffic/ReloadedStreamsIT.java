package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelControl;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests reloads during the responses of decoupled requests. A request that has sent some of its responses sends the
 * others too, in their order, from the version that began.
 */
@Tag("slow")
class ReloadedStreamsIT {
    private static final String MODEL = "repeat";
    private static final int CLIENTS = 4;
    private static final int RELOADS = 30;
    private static final long TIMEOUT_SECONDS = 60;

    /** Each request takes longer than a reload: it sends this many responses, with a pause before each. */
    private static final int RESPONSES = 40;

    private static final int DELAY_MILLIS = 5;
    private static final Pattern EVENT = Pattern.compile("data: \\{(.*)}");
    private static final Pattern INDEX = Pattern.compile("\"IDX\":(\\d+)");
    private static final Pattern OUTPUT = Pattern.compile("\"OUT\":(\\d+)");
    private static final Pattern VERSION = Pattern.compile("\"model_version\":\"(\\d+)\"");

    @TempDir
    private Path directory;

    private final Set<String> versions = ConcurrentHashMap.newKeySet();
    private final AtomicInteger answered = new AtomicInteger();
    private volatile boolean ended;

    @Test
    void responsesGoOnDuringReloads() throws Exception {
        Files.createDirectories(directory.resolve(MODEL).resolve("1"));
        Files.createDirectories(directory.resolve(MODEL).resolve("2"));
        ServerOptions options = TestServer.of(new Repository(directory)).with(o -> o.explicit());
        try (TestServer server = TestServer.open(NereidServer.start(options));
                ExecutorService clients = Executors.newThreadPerTaskExecutor(
                        Thread.ofPlatform().name("client/", 0).factory())) {
            reload(server, 1);
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                boolean isHttp = i % 2 == 0;
                all.add(clients.submit(() -> {
                    if (isHttp) {
                        generate(server);
                    } else {
                        stream(server);
                    }
                    return null;
                }));
            }
            for (int turn = 1; turn <= RELOADS; turn++) {
                reload(server, 1 + turn % 2);
                int before = answered.get();
                // Of so many requests, one began after the reload.
                Eventually.holds("answers", TIMEOUT_SECONDS, () -> answered.get() - before > CLIENTS);
            }
            ended = true;
            for (Future<?> client : all) {
                client.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }

            assertThat(versions).containsExactlyInAnyOrder("1", "2");
            Eventually.holds(
                    "no memory in use", 20, () -> server.server().memory().bytesInUse() == 0);
        }
    }

    private static void reload(TestServer server, int version) throws Exception {
        server.server()
                .control()
                .load(new ModelControl.Load(MODEL, Optional.of(config(version)), Map.of()))
                .toCompletableFuture()
                .get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static String config(int version) {
        return """
                {"backend": "repeat", "model_transaction_policy": {"decoupled": true},
                 "version_policy": {"specific": {"versions": [%d]}},
                 "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]},
                           {"name": "DELAY", "data_type": "TYPE_UINT32", "dims": [-1]},
                           {"name": "WAIT", "data_type": "TYPE_UINT32", "dims": [1]}],
                 "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]},
                            {"name": "IDX", "data_type": "TYPE_UINT32", "dims": [1]}]}
                """.formatted(version);
    }

    private void generate(TestServer server) throws IOException {
        String delays = (DELAY_MILLIS + ",").repeat(RESPONSES);
        StringBuilder inputs = new StringBuilder();
        for (int i = 0; i < RESPONSES; i++) {
            inputs.append(i == 0 ? "" : ",").append(value(i));
        }
        byte[] request = HttpRequests.post(
                "/v2/models/" + MODEL + "/generate_stream",
                ("{\"IN\":[" + inputs + "],\"DELAY\":[" + delays.substring(0, delays.length() - 1) + "],\"WAIT\":[0]}")
                        .getBytes(StandardCharsets.UTF_8),
                "Content-Type: application/json");
        try (HttpConnection connection = server.http()) {
            while (!ended) {
                RawHttpResponse response = connection.exchange(request);
                assertThat(response.status()).as(response::text).isEqualTo(200);
                Responses responses = new Responses();
                Matcher event = EVENT.matcher(response.text());
                while (event.find()) {
                    String json = event.group(1);
                    responses.add(
                            group(VERSION, json),
                            Integer.parseInt(group(INDEX, json)),
                            Integer.parseInt(group(OUTPUT, json)));
                }
                responses.check();
            }
        }
    }

    private static String group(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        assertThat(matcher.find()).as(text).isTrue();
        return matcher.group(1);
    }

    private void stream(TestServer server) throws InterruptedException {
        int[] values = new int[RESPONSES];
        int[] delays = new int[RESPONSES];
        for (int i = 0; i < RESPONSES; i++) {
            values[i] = value(i);
            delays[i] = DELAY_MILLIS;
        }
        ModelInferRequest request = ClientRequest.of(MODEL)
                .input("IN", "INT32", TensorBytes.ints(values), RESPONSES)
                .input("DELAY", "UINT32", TensorBytes.ints(delays), RESPONSES)
                .input("WAIT", "UINT32", TensorBytes.ints(0), 1)
                .overGrpc();
        ManagedChannel channel = server.grpc();
        try {
            BlockingQueue<Object> received = new LinkedBlockingQueue<>();
            StreamObserver<ModelInferRequest> stream =
                    GRPCInferenceServiceGrpc.newStub(channel).modelStreamInfer(new StreamRecorder(received));
            while (!ended) {
                stream.onNext(request);
                Responses responses = new Responses();
                while (responses.count < RESPONSES) {
                    Object message = received.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS);
                    assertThat(message).isInstanceOf(ModelStreamInferResponse.class);
                    ModelStreamInferResponse part = (ModelStreamInferResponse) message;
                    assertThat(part.getErrorMessage()).isEmpty();
                    ModelInferResponse response = part.getInferResponse();
                    responses.add(
                            response.getModelVersion(),
                            number(response, response.getOutputs(0).getName().equals("IDX") ? 0 : 1),
                            number(response, response.getOutputs(0).getName().equals("IDX") ? 1 : 0));
                }
                responses.check();
            }
            stream.onCompleted();
            assertThat(received.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo("completed");
        } finally {
            channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    private static int number(ModelInferResponse response, int output) {
        return Integer.reverseBytes(
                response.getRawOutputContents(output).asReadOnlyByteBuffer().getInt());
    }

    private static int value(int index) {
        return 7 * index;
    }

    /** The responses of one request. */
    private final class Responses {
        private String version = "";
        private int count;

        void add(String from, int index, int output) {
            if (count == 0) {
                version = from;
                versions.add(from);
            }
            assertThat(from).as("one version for all responses of a request").isEqualTo(version);
            assertThat(index).isEqualTo(count);
            assertThat(output).isEqualTo(value(count));
            count++;
        }

        void check() {
            assertThat(count).isEqualTo(RESPONSES);
            answered.incrementAndGet();
        }
    }
}
