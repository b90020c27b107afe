package dev.nereid.distribution.demo;

import com.google.protobuf.ByteString;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Clients over HTTP and gRPC. They block until the response: not for event loops. */
public final class DemoClients {
    private static final String HEADER_LENGTH = "Inference-Header-Content-Length";
    private static final int OK = 200;
    private static final int TIMEOUT_SECONDS = 30;

    private DemoClients() {}

    /** Sends JSON and binary data to {@code http://host:port}; returns the outputs one after another, little-endian. */
    public static ByteBuffer overHttp(String address, DemoRequest sent) throws IOException, InterruptedException {
        byte[] header = sent.json().getBytes(StandardCharsets.UTF_8);
        ByteBuffer data = sent.data();
        byte[] body = new byte[header.length + data.remaining()];
        System.arraycopy(header, 0, body, 0, header.length);
        data.get(body, header.length, body.length - header.length);
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + "/v2/models/" + sent.model() + "/infer"))
                .header(HEADER_LENGTH, String.valueOf(header.length))
                .timeout(Duration.ofSeconds(TIMEOUT_SECONDS))
                .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                .build();
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            HttpResponse<byte[]> response = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (response.statusCode() != OK) {
                throw new IOException(new String(response.body(), StandardCharsets.UTF_8));
            }
            int start = (int) response.headers().firstValueAsLong(HEADER_LENGTH).orElse(response.body().length);
            return ByteBuffer.wrap(response.body()).position(start).slice();
        }
    }

    /** Sends a request over gRPC to {@code host:port}; returns the outputs one after another, little-endian. */
    public static ByteBuffer overGrpc(String target, DemoRequest sent) throws IOException, InterruptedException {
        ManagedChannel channel = Grpc.newChannelBuilder(target, InsecureChannelCredentials.create())
                .build();
        try {
            ModelInferResponse response = GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                    .modelInfer(sent.message());
            return ByteString.copyFrom(response.getRawOutputContentsList()).asReadOnlyByteBuffer();
        } catch (StatusRuntimeException e) {
            throw new IOException(e.getMessage(), e);
        } finally {
            channel.shutdown().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }
}
