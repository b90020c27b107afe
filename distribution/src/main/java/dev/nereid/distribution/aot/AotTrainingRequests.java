package dev.nereid.distribution.aot;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.process.Endpoint;
import dev.nereid.distribution.process.Endpoints;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.BooleanSupplier;

/**
 * Generates load over HTTP and gRPC for the training run of the AOT cache. {@code nereid-aot} stores the profiles of
 * the run in the cache, and servers started with it compile those methods early.
 *
 * <p>The clients share no class with the server: their method calls would be recorded as the server's own. Confined to
 * the thread that runs it, except one thread for each protocol.
 */
public final class AotTrainingRequests {
    /** The model that returns its input, in the directory {@code training} of the installed server. */
    private static final String IDENTITY = "identity";

    private static final String ID = "0000000000000000";

    private static final int SMALL = 256;
    private static final int LARGE = 25_000;
    private static final int SMALL_JSON = 16;

    private AotTrainingRequests() {}

    /** Runs the load on open ports but encrypted ones. Blocks. Returns the numbers of completed requests, as text. */
    public static String run(Endpoints open, Duration time) throws IOException, InterruptedException {
        long end = System.nanoTime() + time.toNanos();
        BooleanSupplier running = () -> System.nanoTime() - end < 0;
        List<FutureTask<String>> clients = new ArrayList<>();
        open.http()
                .filter(port -> !port.isEncrypted())
                .map(Endpoint::local)
                .ifPresent(port -> clients.add(start(new FutureTask<>(() -> {
                    try (HttpTrainingClient http = HttpTrainingClient.connect(port, httpRequests())) {
                        return http.run(running) + " over HTTP";
                    }
                }))));
        open.grpc()
                .filter(port -> !port.isEncrypted())
                .map(Endpoint::local)
                .ifPresent(port -> clients.add(start(new FutureTask<>(() -> {
                    try (GrpcTrainingClient grpc =
                            GrpcTrainingClient.connect(port, List.of(message(""), message(ID)), ID)) {
                        return grpc.run(running) + " over gRPC";
                    }
                }))));
        List<String> counts = new ArrayList<>();
        for (FutureTask<String> client : clients) {
            try {
                counts.add(client.get());
            } catch (ExecutionException e) {
                Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
                throw new IOException("training: " + cause.getMessage(), e);
            }
        }
        return String.join(", ", counts);
    }

    private static FutureTask<String> start(FutureTask<String> client) {
        Thread.ofPlatform().name("training").daemon().start(client);
        return client;
    }

    /** Returns a request per connection: mostly small binary tensors, with or without id, and some of other kinds. */
    private static List<HttpTrainingClient.Request> httpRequests() {
        HttpTrainingClient.Request plain = binary("", SMALL);
        HttpTrainingClient.Request identified = binary("\"id\":\"" + ID + "\",", SMALL);
        HttpTrainingClient.Request json = HttpTrainingClient.Request.of(
                inferPath(IDENTITY), json("\"id\":\"" + ID + "\",", input("INPUT0", "FP32", SMALL_JSON, "0.25")), ID);
        HttpTrainingClient.Request sums = HttpTrainingClient.Request.of(
                inferPath("add_sub"),
                json("", input("INPUT0", "INT32", 4, "20") + "," + input("INPUT1", "INT32", 4, "3")),
                ID);
        List<HttpTrainingClient.Request> requests = new ArrayList<>();
        requests.addAll(Collections.nCopies(16, plain));
        requests.addAll(Collections.nCopies(8, identified));
        requests.addAll(Collections.nCopies(4, json));
        requests.addAll(Collections.nCopies(2, sums));
        requests.add(binary("", LARGE));
        requests.add(HttpTrainingClient.Request.get("/v2/health/ready"));
        // The writer of JSON that is no tensor.
        requests.add(HttpTrainingClient.Request.get("/v2/models/" + IDENTITY));
        return requests;
    }

    private static HttpTrainingClient.Request binary(String id, int elements) {
        String header = "{" + id + "\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1," + elements
                + "],\"parameters\":{\"binary_data_size\":" + elements * Float.BYTES
                + "}}],\"parameters\":{\"binary_data_output\":true}}";
        return HttpTrainingClient.Request.of(inferPath(IDENTITY), header, elements * Float.BYTES, ID);
    }

    private static String inferPath(String model) {
        return "/v2/models/" + model + "/infer";
    }

    private static String json(String id, String inputs) {
        return "{" + id + "\"inputs\":[" + inputs + "]}";
    }

    private static String input(String name, String type, int elements, String value) {
        return "{\"name\":\"" + name + "\",\"datatype\":\"" + type + "\",\"shape\":[1," + elements + "],\"data\":["
                + String.join(",", Collections.nCopies(elements, value)) + "]}";
    }

    private static byte[] message(String id) {
        return ModelInferRequest.newBuilder()
                .setModelName(IDENTITY)
                .setId(id)
                .addInputs(InferInputTensor.newBuilder()
                        .setName("INPUT0")
                        .setDatatype("FP32")
                        .addShape(1)
                        .addShape(SMALL))
                .addRawInputContents(ByteString.copyFrom(new byte[SMALL * Float.BYTES]))
                .build()
                .toByteArray();
    }

    /** Returns the offset of a text in bytes; -1 if absent. */
    static int indexOf(byte[] bytes, String text) {
        return new String(bytes, StandardCharsets.ISO_8859_1).indexOf(text);
    }

    /** Overwrites an id by a number, in hexadecimal digits of the same length. */
    static void number(byte[] bytes, int at, int length, long number) {
        long rest = number;
        for (int i = at + length - 1; i >= at; i--) {
            bytes[i] = (byte) Character.forDigit((int) (rest & 0xF), 16);
            rest >>>= 4;
        }
    }
}
