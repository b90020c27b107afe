package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.ByteString;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import inference.ServerLiveRequest;
import io.grpc.Codec;
import io.grpc.CompressorRegistry;
import io.grpc.DecompressorRegistry;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.zip.Deflater;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.InflaterInputStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests compressed messages in both directions, with clients of chosen codecs. */
final class CompressionIT {
    private static final Metadata.Key<String> ENCODING = key("grpc-encoding");
    private static final Metadata.Key<String> ACCEPTED = key("grpc-accept-encoding");
    private static final Codec DEFLATE = new Deflate("deflate", UnaryOperator.identity());
    private static final Codec GZIP = new Codec.Gzip();
    private static final ByteString LARGE = floats(new float[600_000]);
    private static final ModelInferRequest REQUEST =
            request("m", "FP32", LARGE, 600_000).build();

    /** The zlib format, broken on request of the test. */
    private record Deflate(String name, UnaryOperator<byte[]> spoil) implements Codec {
        @Override
        public String getMessageEncoding() {
            return name;
        }

        @Override
        public OutputStream compress(OutputStream target) {
            ByteArrayOutputStream deflated = new ByteArrayOutputStream();
            return new DeflaterOutputStream(deflated) {
                @Override
                public void close() throws IOException {
                    super.close();
                    try (target) {
                        target.write(spoil.apply(deflated.toByteArray()));
                    }
                }
            };
        }

        @Override
        public InputStream decompress(InputStream compressed) {
            return new InflaterInputStream(compressed);
        }
    }

    /** A client that compresses and accepts messages by its codecs. Records the last headers. */
    private static final class Client implements AutoCloseable {
        private final ManagedChannel channel;
        private final AtomicReference<@Nullable Metadata> headers = new AtomicReference<>();
        private final AtomicReference<@Nullable Metadata> trailers = new AtomicReference<>();

        Client(TestFrontend frontend, Codec... codecs) {
            CompressorRegistry compressors = CompressorRegistry.newEmptyInstance();
            compressors.register(Codec.Identity.NONE);
            DecompressorRegistry decompressors =
                    DecompressorRegistry.emptyInstance().with(Codec.Identity.NONE, false);
            for (Codec codec : codecs) {
                compressors.register(codec);
                decompressors = decompressors.with(codec, true);
            }
            channel = NettyChannelBuilder.forAddress("127.0.0.1", frontend.frontend.port())
                    .usePlaintext()
                    .compressorRegistry(compressors)
                    .decompressorRegistry(decompressors)
                    .maxInboundMessageSize(Integer.MAX_VALUE)
                    .intercept(MetadataUtils.newCaptureMetadataInterceptor(headers, trailers))
                    .build();
        }

        GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub stub(String encoding) {
            return GRPCInferenceServiceGrpc.newBlockingStub(channel)
                    .withCompression(encoding)
                    .withDeadlineAfter(20, TimeUnit.SECONDS);
        }

        ByteString infer(String encoding) {
            return stub(encoding).modelInfer(REQUEST).getRawOutputContents(0);
        }

        ModelStreamInferResponse stream(String encoding, ModelInferRequest request) throws Exception {
            CompletableFuture<ModelStreamInferResponse> first = new CompletableFuture<>();
            StreamObserver<ModelInferRequest> requests = GRPCInferenceServiceGrpc.newStub(channel)
                    .withCompression(encoding)
                    .modelStreamInfer(new StreamObserver<>() {
                        @Override
                        public void onNext(ModelStreamInferResponse response) {
                            first.complete(response);
                        }

                        @Override
                        public void onError(Throwable failure) {
                            first.completeExceptionally(failure);
                        }

                        @Override
                        public void onCompleted() {
                            first.completeExceptionally(new AssertionError("no response"));
                        }
                    });
            requests.onNext(request);
            requests.onCompleted();
            return first.get(20, TimeUnit.SECONDS);
        }

        @Nullable
        String header(Metadata.Key<String> key) {
            return requireNonNull(headers.get()).get(key);
        }

        @Override
        public void close() {
            channel.shutdownNow();
        }
    }

    private static Metadata.Key<String> key(String name) {
        return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
    }

    private static TestFrontend frontend(int maxBytes, ResponseCompression compression) {
        TestFrontend frontend = new TestFrontend(grpc -> {
            grpc.maxInboundBytes = maxBytes;
            grpc.compression = compression;
        });
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        return frontend;
    }

    private static TestFrontend frontend() {
        return frontend(Integer.MAX_VALUE, ResponseCompression.NONE);
    }

    @ParameterizedTest
    @CsvSource({"deflate, 1", "deflate, 600000", "gzip, 1", "gzip, 600000"})
    void acceptsCompressedRequests(String encoding, int count) throws Exception {
        ByteString content = floats(new float[count]);
        ModelInferRequest request = request("m", "FP32", content, count).build();
        try (TestFrontend frontend = frontend();
                Client client = new Client(frontend, DEFLATE, GZIP)) {
            assertThat(client.stub(encoding).modelInfer(request).getRawOutputContentsList())
                    .containsExactly(content);
            assertThat(client.stream(encoding, request).getInferResponse().getRawOutputContentsList())
                    .containsExactly(content);
            assertThat(client.stub(encoding)
                            .serverLive(ServerLiveRequest.getDefaultInstance())
                            .getLive())
                    .isTrue();
        }
    }

    @ParameterizedTest
    @CsvSource({"deflate", "gzip"})
    void boundsWhatRequestsBecome(String encoding) throws Exception {
        try (TestFrontend frontend = frontend(100_000, ResponseCompression.NONE);
                Client client = new Client(frontend, DEFLATE, GZIP)) {
            assertFails(
                    () -> client.infer(encoding),
                    Status.Code.INVALID_ARGUMENT,
                    "Decompressed gRPC message exceeds maximum size 100000");
            assertThat(client.stream(encoding, REQUEST).getErrorMessage())
                    .isEqualTo("Decompressed gRPC message exceeds maximum size 100000");
            assertThat(frontend.server.requests()).isEmpty();
        }
    }

    @Test
    void refusesWhatIsNotDeflated() {
        byte[] dictionary = deflatedWithDictionary();
        for (UnaryOperator<byte[]> spoil : List.<UnaryOperator<byte[]>>of(
                bytes -> new byte[] {1, 2, 3},
                bytes -> new byte[0],
                bytes -> Arrays.copyOf(bytes, bytes.length / 2),
                bytes -> Arrays.copyOf(bytes, bytes.length - 1),
                bytes -> Arrays.copyOfRange(bytes, 2, bytes.length - 4),
                bytes -> {
                    bytes[bytes.length - 1] ^= 1;
                    return bytes;
                },
                bytes -> dictionary)) {
            try (TestFrontend frontend = frontend();
                    Client client = new Client(frontend, new Deflate("deflate", spoil))) {
                assertFails(() -> client.infer("deflate"), Status.Code.INTERNAL, "Unable to parse request");
                assertThat(frontend.server.requests()).isEmpty();
            }
        }
    }

    private static byte[] deflatedWithDictionary() {
        Deflater deflater = new Deflater();
        deflater.setDictionary("a dictionary".getBytes(UTF_8));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (OutputStream stream = new DeflaterOutputStream(bytes, deflater)) {
            stream.write(REQUEST.toByteArray());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        } finally {
            deflater.end();
        }
        return bytes.toByteArray();
    }

    @Test
    void refusesAnUnknownEncodingAndNamesTheAcceptedOnes() {
        try (TestFrontend frontend = frontend();
                Client client = new Client(frontend, new Deflate("snappy", UnaryOperator.identity()), GZIP)) {
            StatusRuntimeException failure =
                    catchThrowableOfType(StatusRuntimeException.class, () -> client.infer("snappy"));

            assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.UNIMPLEMENTED);
            assertThat(failure.getStatus().getDescription())
                    .isEqualTo("Can't find decompressor for snappy (expected: one of identity,deflate,gzip)");
            assertThat(requireNonNull(failure.getTrailers()).get(ACCEPTED)).isEqualTo("identity,deflate,gzip");
            assertThat(client.infer("gzip")).isEqualTo(LARGE);
            assertThat(requireNonNull(client.header(ACCEPTED)).split(",", -1))
                    .containsExactlyInAnyOrder("identity", "deflate", "gzip");
        }
    }

    /** The choices of gRPC for C++ among the encodings that a client accepts. */
    @ParameterizedTest
    @CsvSource({
        "NONE, identity, identity, identity",
        "LOW, deflate, gzip, gzip",
        "MEDIUM, deflate, gzip, deflate",
        "HIGH, deflate, gzip, deflate"
    })
    void compressesResponsesAsTheClientAcceptsThem(
            ResponseCompression compression, String ofDeflate, String ofGzip, String ofBoth) throws Exception {
        try (TestFrontend frontend = frontend(Integer.MAX_VALUE, compression)) {
            assertEncoding(frontend, ofDeflate, DEFLATE);
            assertEncoding(frontend, ofGzip, GZIP);
            assertEncoding(frontend, ofBoth, GZIP, DEFLATE);
            assertEncoding(frontend, "identity");
        }
    }

    private static void assertEncoding(TestFrontend frontend, String encoding, Codec... taken) throws Exception {
        try (Client client = new Client(frontend, taken)) {
            assertThat(client.infer("identity")).isEqualTo(LARGE);
            assertThat(client.header(ENCODING)).isEqualTo(encoding);
            ModelInferRequest small = request("m", "FP32", floats(1), 1).build();
            assertThat(client.stub("identity").modelInfer(small).getRawOutputContents(0))
                    .isEqualTo(floats(1));
            client.headers.set(null);
            assertThat(client.stream("identity", REQUEST).getInferResponse().getRawOutputContents(0))
                    .isEqualTo(LARGE);
            assertThat(client.header(ENCODING)).isEqualTo(encoding);
        }
    }

    @ParameterizedTest
    @EnumSource(value = ResponseCompression.class, names = "NONE", mode = EnumSource.Mode.EXCLUDE)
    void compressesBothWays(ResponseCompression compression) throws Exception {
        try (TestFrontend frontend = frontend(Integer.MAX_VALUE, compression);
                Client client = new Client(frontend, DEFLATE)) {
            assertThat(client.infer("deflate")).isEqualTo(LARGE);
            assertThat(client.stream("deflate", REQUEST).getInferResponse().getRawOutputContents(0))
                    .isEqualTo(LARGE);
        }
    }
}
