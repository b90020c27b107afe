package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.service.InferCallDependencies;
import dev.nereid.grpc.service.ModelInferCall;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferMessageReader;
import dev.nereid.grpc.wire.InferRequestAssembler;
import dev.nereid.grpc.wire.InferResponseMessage;
import dev.nereid.grpc.wire.ResponseArrays;
import dev.nereid.grpc.wire.ResponseCompressor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/**
 * Tests that registrations are released before the terminal response is sent. Clients can therefore unregister regions
 * once they have it.
 */
final class LeaseReleaseTest {
    private static final InferParameter REGION =
            InferParameter.newBuilder().setStringParam("in").build();
    private static final InferParameter BYTES =
            InferParameter.newBuilder().setInt64Param(Float.BYTES).build();
    private static final InferParameter YES =
            InferParameter.newBuilder().setBoolParam(true).build();

    private static ModelInferRequest.Builder request(String model) {
        InferInputTensor.Builder input = InferInputTensor.newBuilder()
                .setName("INPUT0")
                .setDatatype("FP32")
                .addShape(1)
                .putParameters("shared_memory_region", REGION)
                .putParameters("shared_memory_byte_size", BYTES);
        return ModelInferRequest.newBuilder().setModelName(model).addInputs(input);
    }

    private static void respond(ReceivedRequest call, boolean isLast) {
        call.respond(List.of(call.input(0, "OUTPUT0")), Map.of(), isLast);
    }

    /** Calls ModelInfer. Returns the events until the client has its response. */
    private static List<String> infer(Consumer<ReceivedRequest> model) {
        LeakCheckingMemory memory = new LeakCheckingMemory();
        FakeInferenceServer server = new FakeInferenceServer(memory);
        server.add(FakeModel.identity("m", DataType.FP32, 0, -1).responding(model));
        server.sharedMemory().register("in", "/in", 0, Float.BYTES);
        InferCallDependencies dependencies = new InferCallDependencies(
                new InferRequestAssembler(memory, server.sharedMemory(), Integer.MAX_VALUE),
                Optional.empty(),
                ResponseCompressor.NONE,
                new TransportMemory(memory, Long.MAX_VALUE),
                System::nanoTime);
        ModelInferCall call = new ModelInferCall(
                new RecordingCall(server.sharedMemory()::note),
                server,
                dependencies,
                new ResponseArrays(),
                new CallContext(OptionalLong.empty(), ForwardedHeaders.NONE, Optional.empty()));
        byte[] message = request("m").build().toByteArray();
        call.onMessage(new Parsed.Ok<>(InferMessageReader.read(TestMessages.cut(message, List.of()))));
        call.onHalfClose();
        call.onComplete();
        memory.close();
        assertThat(server.sharedMemory().leases()).isZero();
        return server.sharedMemory().events();
    }

    @Test
    void releasesBeforeTheResponseOfACall() {
        assertThat(infer(ReceivedRequest::respondWithInputs))
                .containsExactly("leased in", "released in", "message", "OK", "closed in");
    }

    @Test
    void releasesBeforeTheErrorOfACall() {
        assertThat(infer(call -> call.fail(ErrorCode.INTERNAL, "no")))
                .containsExactly("leased in", "released in", "INTERNAL", "closed in");
    }

    @Test
    void releasesBeforeTheRefusalOfACall() {
        assertThat(infer(call -> call.refuse(ErrorCode.INVALID_ARGUMENT, "no")))
                .containsExactly("leased in", "released in", "INVALID_ARGUMENT", "closed in");
    }

    @Test
    void releasesIfTheModelHasBecomeDecoupled() {
        assertThat(infer(call -> respond(call, false)))
                .startsWith("leased in", "released in", "UNIMPLEMENTED")
                .endsWith("closed in");
    }

    private static ReceivedRequest send(StreamHarness stream, ModelInferRequest.Builder request) {
        stream.send(request.build());
        return stream.calls.remove();
    }

    private static StreamHarness open(StreamHarness stream) {
        stream.server.sharedMemory().register("in", "/in", 0, Float.BYTES);
        return stream;
    }

    private static void assertEvents(StreamHarness stream, String... events) {
        assertThat(stream.server.sharedMemory().events()).containsExactly(events);
        assertThat(stream.server.sharedMemory().leases()).isZero();
        stream.checkMemory();
    }

    @Test
    void releasesBeforeTheResponsesOfAStream() {
        StreamHarness stream = open(new StreamHarness());

        send(stream, request("plain")).respondWithInputs();
        send(stream, request("plain")).fail(ErrorCode.INTERNAL, "no");

        assertEvents(
                stream,
                "leased in",
                "released in",
                "message",
                "closed in",
                "leased in",
                "released in",
                "message",
                "closed in");
    }

    @Test
    void releasesBeforeTheRefusalOnAStream() {
        StreamHarness stream = open(new StreamHarness());
        stream.server.add(FakeModel.identity("refusing", DataType.FP32, 0, -1)
                .responding(call -> call.refuse(ErrorCode.INVALID_ARGUMENT, "no")));

        stream.send(request("refusing").build());

        assertEvents(stream, "leased in", "released in", "message", "closed in");
    }

    @Test
    void releasesAtTheEndOfADecoupledModel() {
        StreamHarness stream = open(new StreamHarness());
        ReceivedRequest call = send(stream, request("many"));

        respond(call, false);
        call.respondWithError(ErrorCode.INTERNAL, "not this one");
        call.end();

        assertEvents(stream, "leased in", "message", "message", "released in", "closed in");
    }

    @Test
    void releasesBeforeTheFinalResponseOfADecoupledModel() {
        StreamHarness stream = open(new StreamHarness());
        ReceivedRequest call = send(stream, request("many"));

        respond(call, false);
        respond(call, true);

        assertEvents(stream, "leased in", "message", "released in", "message", "closed in");
    }

    @Test
    void releasesBeforeTheEmptyFinalResponse() {
        StreamHarness stream = open(new StreamHarness());
        ModelInferRequest.Builder request = request("many");
        request.putParameters("triton_enable_empty_final_response", YES);
        ReceivedRequest call = send(stream, request);

        respond(call, false);
        call.end();

        assertEvents(stream, "leased in", "message", "released in", "message", "closed in");
    }

    @Test
    void releasesAllIfTheFirstErrorEndsTheStream() {
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of("triton_grpc_error", Metadata.ASCII_STRING_MARSHALLER), "true");
        StreamHarness stream = open(new StreamHarness(headers));
        ReceivedRequest plain = send(stream, request("plain"));
        ReceivedRequest many = send(stream, request("many"));

        many.respondWithError(ErrorCode.INTERNAL, "no");

        assertThat(plain.isCancelled()).isTrue();
        assertEvents(
                stream, "leased in", "leased in", "released in", "released in", "INTERNAL", "closed in", "closed in");
    }

    @Test
    void releasesAllIfTheClientReadsTooSlowly() {
        StreamHarness stream = open(new StreamHarness(1000));
        send(stream, request("plain"));
        ReceivedRequest many = send(stream, request("many"));
        stream.ready(false);

        while (!many.isCancelled()) {
            respond(many, false);
        }

        assertEvents(
                stream,
                "leased in",
                "leased in",
                "released in",
                "released in",
                "UNAVAILABLE",
                "closed in",
                "closed in");
    }

    @Test
    void releasesAllIfTheStreamCannotBeWrittenTo() {
        StreamHarness stream = open(new StreamHarness());
        send(stream, request("plain"));
        ReceivedRequest many = send(stream, request("many"));
        stream.stream.failure = new OutOfMemoryError("no memory, says the test");

        respond(many, false);

        assertEvents(
                stream, "leased in", "leased in", "released in", "released in", "INTERNAL", "closed in", "closed in");
    }

    /** A call without network that records its message and end. */
    private static final class RecordingCall extends ServerCall<Parsed<InferMessage>, InferResponseMessage> {
        private final Consumer<String> journal;

        RecordingCall(Consumer<String> journal) {
            this.journal = journal;
        }

        @Override
        public void request(int count) {}

        @Override
        public void sendHeaders(Metadata headers) {}

        @Override
        public void sendMessage(InferResponseMessage message) {
            journal.accept("message");
        }

        @Override
        public void close(Status result, Metadata trailers) {
            journal.accept(result.getCode().name());
        }

        @Override
        public boolean isCancelled() {
            return false;
        }

        @Override
        public MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> getMethodDescriptor() {
            throw new UnsupportedOperationException("the method does not matter");
        }
    }
}
