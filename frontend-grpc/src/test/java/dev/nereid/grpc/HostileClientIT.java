package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static io.grpc.Status.Code.INTERNAL;
import static io.grpc.Status.Code.RESOURCE_EXHAUSTED;
import static io.grpc.Status.Code.UNIMPLEMENTED;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Deadline;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests clients that disconnect, send garbage or break the protocol. */
final class HostileClientIT {
    private static final CallOptions IN_TIME = CallOptions.DEFAULT.withDeadline(Deadline.after(60, TimeUnit.SECONDS));
    private static final ModelInferRequest REQUEST =
            request("slow", "FP32", floats(1, 2, 3, 4), 1, 4).build();

    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    private final BlockingQueue<ReceivedRequest> arrived = new LinkedBlockingQueue<>();

    @BeforeEach
    void addModels() {
        frontend.server.add(FakeModel.identity("slow", DataType.FP32, 64, -1).responding(arrived::add));
        frontend.server.add(FakeModel.identity("fast", DataType.FP32, 64, -1));
    }

    /** Writes and reads bytes as they are. */
    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new ByteArrayInputStream(value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    private byte[] send(String method, byte[] message) {
        MethodDescriptor<byte[], byte[]> descriptor = MethodDescriptor.<byte[], byte[]>newBuilder()
                .setType(MethodDescriptor.MethodType.UNARY)
                .setFullMethodName("inference.GRPCInferenceService/" + method)
                .setRequestMarshaller(new Bytes())
                .setResponseMarshaller(new Bytes())
                .build();
        return ClientCalls.blockingUnaryCall(frontend.channel, descriptor, IN_TIME, message);
    }

    private void assertStillServes() {
        ModelInferRequest request = REQUEST.toBuilder().setModelName("fast").build();
        assertThat(frontend.client.modelInfer(request).getRawOutputContents(0)).isEqualTo(floats(1, 2, 3, 4));
    }

    @Test
    void refusesGarbage() {
        assertFails(() -> send("ModelInfer", new byte[] {-1, -1, -1}), INTERNAL, "Unable to parse request");
        assertFails(
                () -> send("ServerLive", "garbage garbage".getBytes(StandardCharsets.UTF_8)),
                INTERNAL,
                "Unable to parse request");
        assertFails(
                () -> send("LogSettings", new byte[] {-1}),
                UNIMPLEMENTED,
                "Method inference.GRPCInferenceService/LogSettings is unimplemented");
        assertStillServes();
    }

    @Test
    void survivesGarbledRequests() {
        byte[] good = REQUEST.toBuilder()
                .setModelName("fast")
                .setId("x")
                .putParameters(
                        "a",
                        inference.InferParameter.newBuilder().setInt64Param(1).build())
                .build()
                .toByteArray();
        Random random = new Random(7);
        for (int i = 0; i < 2000; i++) {
            byte[] bad = Arrays.copyOf(good, 1 + random.nextInt(good.length));
            for (int change = random.nextInt(3); change >= 0; change--) {
                bad[random.nextInt(bad.length)] = (byte) random.nextInt();
            }
            try {
                send("ModelInfer", bad);
            } catch (StatusRuntimeException refusal) {
                assertThat(refusal.getStatus().getCode())
                        .isIn(INTERNAL, Status.Code.INVALID_ARGUMENT, Status.Code.NOT_FOUND, UNIMPLEMENTED);
            }
        }
        frontend.awaitNoMemory();
        assertStillServes();
    }

    @Test
    void refusesMessageLengthsOfTwoGigabytes() {
        // raw_input_contents of 2^31 - 1 bytes, of which three arrive
        byte[] message = {0x3A, -1, -1, -1, -1, 7, 1, 2, 3};

        assertFails(() -> send("ModelInfer", message), INTERNAL, "Unable to parse request");
        assertThat(frontend.memory.bytesInUse()).isZero();
    }

    @Test
    void refusesMessagesBeyondTheLimit() {
        try (TestFrontend strict = new TestFrontend(grpc -> grpc.maxInboundBytes = 1000)) {
            strict.server.add(FakeModel.identity("fast", DataType.FP32, 64, -1));
            ModelInferRequest large =
                    request("fast", "FP32", floats(new float[300]), 1, 300).build();

            assertThat(codeOf(strict, large, "identity")).isEqualTo(RESOURCE_EXHAUSTED);
            assertFails(
                    () -> strict.client.modelInfer(large),
                    RESOURCE_EXHAUSTED,
                    "gRPC message exceeds maximum size 1000: " + large.getSerializedSize());
            assertFails(
                    () -> strict.client.withCompression("gzip").modelInfer(large),
                    Status.Code.INVALID_ARGUMENT,
                    "Decompressed gRPC message exceeds maximum size 1000");
            assertThat(strict.server.requests()).isEmpty();
        }
    }

    private static Status.Code codeOf(TestFrontend frontend, ModelInferRequest request, String compression) {
        try {
            frontend.client.withCompression(compression).modelInfer(request);
            return Status.Code.OK;
        } catch (StatusRuntimeException failure) {
            return failure.getStatus().getCode();
        }
    }

    @Test
    void refusesTypedContentsThatGrowBeyondTheLimit() {
        try (TestFrontend strict = new TestFrontend(grpc -> grpc.maxInboundBytes = 1000)) {
            strict.server.add(FakeModel.identity("fast", DataType.INT64, 64, -1));
            ModelInferRequest.Builder growing = ModelInferRequest.newBuilder().setModelName("fast");
            var contents = growing.addInputsBuilder()
                    .setName("INPUT0")
                    .setDatatype("INT64")
                    .getContentsBuilder();
            for (int i = 0; i < 500; i++) {
                contents.addInt64Contents(1);
            }

            assertFails(
                    () -> strict.client.modelInfer(growing.build()),
                    Status.Code.INVALID_ARGUMENT,
                    "inputs for model 'fast' take 4000 bytes, which exceeds the maximum allowed value of 1000 bytes."
                            + " Use --grpc-max-input-size to increase the limit.");
        }
    }

    /** Starts a call whose messages the test sends one by one. */
    private ClientCall<ModelInferRequest, ModelInferResponse> start(
            CompletableFuture<Status> end, CallOptions options) {
        MethodDescriptor<ModelInferRequest, ModelInferResponse> streaming =
                GRPCInferenceServiceGrpc.getModelInferMethod().toBuilder()
                        .setType(MethodDescriptor.MethodType.BIDI_STREAMING)
                        .build();
        ClientCall<ModelInferRequest, ModelInferResponse> call = frontend.channel.newCall(streaming, options);
        call.start(
                new ClientCall.Listener<>() {
                    @Override
                    public void onClose(Status status, Metadata trailers) {
                        end.complete(status);
                    }
                },
                new Metadata());
        call.request(1);
        return call;
    }

    @Test
    void cancelsRequestsOfCancelledCalls() throws Exception {
        CompletableFuture<Status> end = new CompletableFuture<>();
        ClientCall<ModelInferRequest, ModelInferResponse> call = start(end, IN_TIME);
        call.sendMessage(REQUEST);
        call.halfClose();
        ReceivedRequest served = arrived.take();

        call.cancel("enough", null);

        assertThat(end.get().getCode()).isEqualTo(Status.Code.CANCELLED);
        TestFrontend.await(served::isCancelled);
        frontend.awaitNoMemory();
        served.respondWithInputs(); // too late, without effect
        assertStillServes();
    }

    @Test
    void cancelsCallsWhoseDeadlineHasPassed() throws Exception {
        assertStillServes(); // the connection is open, so the deadline does not expire while it is opened
        CompletableFuture<Status> end = new CompletableFuture<>();
        ClientCall<ModelInferRequest, ModelInferResponse> call =
                start(end, CallOptions.DEFAULT.withDeadline(Deadline.after(1000, TimeUnit.MILLISECONDS)));
        call.sendMessage(REQUEST);
        call.halfClose();
        ReceivedRequest served = arrived.take();
        long left = served.request().options().deadlineNanos().orElseThrow() - System.nanoTime();
        assertThat(left).isLessThan(TimeUnit.MILLISECONDS.toNanos(1000));

        assertThat(end.get().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
        TestFrontend.await(served::isCancelled);
        frontend.awaitNoMemory();
    }

    @Test
    void releasesRequestsThatNeverEnd() throws Exception {
        CompletableFuture<Status> end = new CompletableFuture<>();
        ClientCall<ModelInferRequest, ModelInferResponse> call = start(end, IN_TIME);
        call.sendMessage(REQUEST);
        assertStillServes(); // on the same connection, so the message has arrived

        call.cancel("enough", null);

        assertThat(end.get().getCode()).isEqualTo(Status.Code.CANCELLED);
        frontend.awaitNoMemory();
        assertThat(arrived).isEmpty();
    }

    @Test
    void refusesCallsWithoutAMessage() throws Exception {
        CompletableFuture<Status> end = new CompletableFuture<>();

        start(end, IN_TIME).halfClose();

        assertThat(end.get().getCode()).isEqualTo(INTERNAL);
        assertThat(end.get().getDescription()).isEqualTo("Half-closed without a request");
    }

    @Test
    void refusesCallsWithTwoMessages() throws Exception {
        CompletableFuture<Status> end = new CompletableFuture<>();
        ClientCall<ModelInferRequest, ModelInferResponse> call = start(end, IN_TIME);
        call.sendMessage(REQUEST);
        call.sendMessage(REQUEST);
        call.halfClose();

        assertThat(end.get().isOk()).isFalse();
        assertThat(arrived).isEmpty();
        frontend.awaitNoMemory();
    }

    @Test
    void completesTheLastCallsWhileItCloses() throws Exception {
        CompletableFuture<Status> end = new CompletableFuture<>();
        ClientCall<ModelInferRequest, ModelInferResponse> call = start(end, IN_TIME);
        call.sendMessage(REQUEST);
        call.halfClose();
        ReceivedRequest served = arrived.take();

        Thread closing = Thread.ofVirtual().start(frontend.frontend::close);
        TestFrontend.await(() -> closing.getState() != Thread.State.RUNNABLE && closing.getState() != Thread.State.NEW);
        assertThat(end).isNotDone();
        served.respondWithInputs();

        assertThat(end.get().getCode()).isEqualTo(Status.Code.OK);
        closing.join();
    }

    @Test
    void endsCallsThatDoNotEndInTime() throws Exception {
        try (TestFrontend hasty = new TestFrontend(grpc -> grpc.closeTimeout = Duration.ofMillis(50))) {
            BlockingQueue<ReceivedRequest> waiting = new LinkedBlockingQueue<>();
            hasty.server.add(FakeModel.identity("slow", DataType.FP32, 64, -1).responding(waiting::add));
            CompletableFuture<Status.Code> end =
                    CompletableFuture.supplyAsync(() -> codeOf(hasty, REQUEST, "identity"));
            ReceivedRequest served = waiting.take();

            hasty.frontend.close();

            assertThat(end.get()).isEqualTo(Status.Code.CANCELLED);
            TestFrontend.await(served::isCancelled);
        }
    }
}
