package dev.nereid.distribution.demo;

import com.google.protobuf.ByteString;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
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

/** Clients of the model {@code digits} over HTTP and gRPC. Blocks until the response: not for event loops. */
public final class DigitClients {
    private static final String MODEL = "digits";
    private static final String INPUT = "image";
    private static final String TYPE = "FP32";
    private static final String HEADER_LENGTH = "Inference-Header-Content-Length";
    private static final int OK = 200;
    private static final int TIMEOUT_SECONDS = 30;

    private DigitClients() {}

    /**
     * Sends an image over HTTP, as binary data behind a JSON header.
     *
     * @param address the server, {@code http://host:port}
     * @param image the image
     * @return the probabilities: FP32, little-endian
     */
    public static ByteBuffer overHttp(String address, DigitImage image) throws IOException, InterruptedException {
        ByteBuffer pixels = image.pixels();
        byte[] header = ("{\"inputs\":[{\"name\":\"" + INPUT + "\",\"datatype\":\"" + TYPE + "\",\"shape\":[1,1,"
                        + image.height() + "," + image.width() + "],\"parameters\":{\"binary_data_size\":"
                        + pixels.remaining() + "}}],\"parameters\":{\"binary_data_output\":true}}")
                .getBytes(StandardCharsets.UTF_8);
        byte[] body = new byte[header.length + pixels.remaining()];
        System.arraycopy(header, 0, body, 0, header.length);
        pixels.get(body, header.length, body.length - header.length);
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + "/v2/models/" + MODEL + "/infer"))
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

    /**
     * Sends an image over gRPC.
     *
     * @param target the server, {@code host:port}
     * @param image the image
     * @return the probabilities: FP32, little-endian
     */
    public static ByteBuffer overGrpc(String target, DigitImage image) throws IOException, InterruptedException {
        ModelInferRequest request = ModelInferRequest.newBuilder()
                .setModelName(MODEL)
                .addInputs(InferInputTensor.newBuilder()
                        .setName(INPUT)
                        .setDatatype(TYPE)
                        .addShape(1)
                        .addShape(1)
                        .addShape(image.height())
                        .addShape(image.width()))
                .addRawInputContents(ByteString.copyFrom(image.pixels()))
                .build();
        ManagedChannel channel = Grpc.newChannelBuilder(target, InsecureChannelCredentials.create())
                .build();
        try {
            ModelInferResponse response = GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS)
                    .modelInfer(request);
            return response.getRawOutputContents(0).asReadOnlyByteBuffer();
        } catch (StatusRuntimeException e) {
            throw new IOException(e.getMessage(), e);
        } finally {
            channel.shutdown().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }
}
