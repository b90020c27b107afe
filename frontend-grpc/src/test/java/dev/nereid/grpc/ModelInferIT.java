package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static io.grpc.Status.Code.INTERNAL;
import static io.grpc.Status.Code.INVALID_ARGUMENT;
import static io.grpc.Status.Code.NOT_FOUND;
import static io.grpc.Status.Code.UNAVAILABLE;
import static io.grpc.Status.Code.UNIMPLEMENTED;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.api.InputTensor;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.InferParameter;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

final class ModelInferIT {
    private static final ByteString FOUR = floats(1, 2, 3, 4);
    private static final InferParameter REGION =
            InferParameter.newBuilder().setStringParam("r").build();
    private static final InferParameter SIXTEEN =
            InferParameter.newBuilder().setInt64Param(16).build();

    @AutoClose
    private final TestFrontend frontend = new TestFrontend();

    @AutoClose
    private final ExecutorService instance = Executors.newSingleThreadExecutor();

    @BeforeEach
    void addModels() {
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1));
        frontend.server.add(
                FakeModel.identity("elsewhere", DataType.FP32, 64, -1).on(instance));
    }

    private ModelInferResponse infer(ModelInferRequest.Builder request) {
        return frontend.client.modelInfer(request.build());
    }

    private ReceivedRequest lastCall() {
        return frontend.server.requests().getLast();
    }

    @ParameterizedTest
    @ValueSource(strings = {"fp32", "elsewhere"})
    void responds(String model) {
        ModelInferResponse response = infer(request(model, "FP32", FOUR, 1, 4).setId("seven"));

        ModelInferResponse.Builder expected = ModelInferResponse.newBuilder()
                .setModelName(model)
                .setModelVersion("1")
                .setId("seven")
                .addRawOutputContents(FOUR);
        expected.addOutputsBuilder()
                .setName("OUTPUT0")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(4);
        assertThat(response).isEqualTo(expected.build());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1000, 16_384, 100_000, 600_000, 3_000_000})
    void carriesTensorsOfEverySize(int size) {
        byte[] content = new byte[size];
        new Random(size).nextBytes(content);
        frontend.server.add(FakeModel.identity("bytes", DataType.UINT8, 0, -1).on(instance));

        ModelInferResponse response = infer(request("bytes", "UINT8", ByteString.copyFrom(content), size));

        assertThat(response.getRawOutputContents(0)).isEqualTo(ByteString.copyFrom(content));
        assertThat(lastCall().request().inputs().getFirst().data().address() % 64)
                .isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {10, 600_000})
    void takesCompressedRequests(int elements) {
        ByteString content = floats(new float[elements]);

        ModelInferResponse response = frontend.client
                .withCompression("gzip")
                .modelInfer(request("fp32", "FP32", content, 1, elements).build());

        assertThat(response.getRawOutputContents(0)).isEqualTo(content);
    }

    @Test
    void hasNoNeedOfMemoryForEmptyTensors() {
        ModelInferResponse response = infer(request("fp32", "FP32", ByteString.EMPTY, 1, 0));

        assertThat(response.getRawOutputContentsList()).containsExactly(ByteString.EMPTY);
    }

    @Test
    void passesRequestsToTheServerUnchanged() {
        ModelInferRequest.Builder request = request("fp32", "FP32", FOUR, 1, 4).setModelVersion("1");
        request.addOutputsBuilder().setName("OUTPUT0");
        request.putParameters("sequence_id", SIXTEEN)
                .putParameters(
                        "sequence_start",
                        InferParameter.newBuilder().setBoolParam(true).build())
                .putParameters("priority", SIXTEEN)
                .putParameters("timeout", SIXTEEN)
                .putParameters("mine", REGION);
        infer(request);

        assertThat(lastCall().request().model().version()).isEqualTo(1);
        assertThat(lastCall().request().outputs()).containsExactly(RequestedOutput.of("OUTPUT0"));
        assertThat(lastCall().request().parameters()).isEqualTo(Map.of("mine", new ParameterValue.Text("r")));
        RequestOptions options = lastCall().request().options();
        assertThat(options.priority()).isEqualTo(16);
        assertThat(options.timeoutMicros()).isEqualTo(16);
        assertThat(options.sequence()).contains(new Sequence(new Sequence.Id.Numeric(16), true, false));
        assertThat(options.deadlineNanos().orElseThrow() - System.nanoTime()).isBetween(1L, 20_000_000_000L);
    }

    @Test
    void passesContradictingInputsToTheServer() {
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1)
                .responding(call -> call.fail(ErrorCode.INVALID_ARGUMENT, "no")));

        assertFails(() -> infer(request("fp32", "FOO", FOUR, -1, 7)), INVALID_ARGUMENT, "no");

        InputTensor input = lastCall().request().inputs().getFirst();
        assertThat(input.datatype()).isEqualTo("FOO");
        assertThat(input.dims()).containsExactly(-1, 7);
        assertThat(input.data().byteSize()).isEqualTo(16);
    }

    @Test
    void takesTypedContents() {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("fp32");
        request.addInputsBuilder()
                .setName("INPUT0")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(4)
                .setContents(InferTensorContents.newBuilder().addAllFp32Contents(List.of(1f, 2f, 3f, 4f)));

        assertThat(infer(request).getRawOutputContentsList()).containsExactly(FOUR);
    }

    @Test
    void takesRawContentsInTheOrderOfInputs() {
        ModelInferRequest.Builder request = request("fp32", "FP32", FOUR, 1, 4);
        request.addInputsBuilder()
                .setName("INPUT1")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(1);
        request.addRawInputContents(floats(5)).addRawInputContents(floats(6));

        assertThat(infer(request).getRawOutputContentsList()).containsExactly(FOUR, floats(5));
    }

    @Test
    void writesParametersOfTheBackend() {
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1)
                .responding(call -> call.respond(
                        List.of(),
                        Map.of("n", new ParameterValue.Int(42), "b", new ParameterValue.Bool(false)),
                        true)));

        ModelInferResponse response = infer(request("fp32", "FP32", FOUR, 1, 4));

        assertThat(response.getParametersMap())
                .isEqualTo(Map.of(
                        "n", InferParameter.newBuilder().setInt64Param(42).build(),
                        "b", InferParameter.newBuilder().setBoolParam(false).build()));
    }

    @ParameterizedTest
    @EnumSource(ErrorCode.class)
    void reportsErrors(ErrorCode code) {
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1)
                .on(instance)
                .responding(call -> call.fail(code, "because")));
        String name = code == ErrorCode.UNSUPPORTED ? "UNIMPLEMENTED" : code.name();

        assertFails(() -> infer(request("fp32", "FP32", FOUR, 1, 4)), io.grpc.Status.Code.valueOf(name), "because");
        frontend.awaitNoMemory();
    }

    @Test
    void refusesModelsThatAreNotThere() {
        assertFails(
                () -> infer(ModelInferRequest.newBuilder()), NOT_FOUND, "Request for unknown model: '' is not found");
        assertFails(
                () -> infer(request("nope", "FP32", FOUR, 1, 4)),
                NOT_FOUND,
                "Request for unknown model: 'nope' is not found");
        assertFails(
                () -> infer(request("fp32", "FP32", FOUR, 1, 4).setModelVersion("9")),
                NOT_FOUND,
                "Request for unknown model: 'fp32' version 9 is not found");
        assertFails(
                () -> infer(request("fp32", "FP32", FOUR, 1, 4).setModelVersion("abc")),
                INVALID_ARGUMENT,
                "failed to get model version from specified version string 'abc' (details: stol), version should be an"
                        + " integral value > 0");
        assertFails(
                () -> infer(request("fp32", "FP32", FOUR, 1, 4).setModelVersion("-1")),
                INVALID_ARGUMENT,
                "invalid model version specified '-1' , version should be an integral value > 0");
    }

    @Test
    void refusesDecoupledModels() {
        frontend.server.add(FakeModel.identity("many", DataType.FP32, 64, -1).decoupled());

        assertFails(
                () -> infer(request("many", "FP32", FOUR, 1, 4)),
                UNIMPLEMENTED,
                "ModelInfer RPC doesn't support models with decoupled transaction policy");
        assertThat(frontend.server.requests()).isEmpty();
    }

    @Test
    void refusesResponsesThatAreNotOne() {
        frontend.server.add(FakeModel.identity("none", DataType.FP32, 64, -1).responding(ReceivedRequest::end));
        frontend.server.add(FakeModel.identity("many", DataType.FP32, 64, -1)
                .on(instance)
                .responding(call -> call.respond(List.of(), Map.of(), false)));

        assertFails(() -> infer(request("none", "FP32", FOUR, 1, 4)), INTERNAL, "expected a single response, got 0");
        assertFails(
                () -> infer(request("many", "FP32", FOUR, 1, 4)),
                UNIMPLEMENTED,
                "ModelInfer RPC doesn't support models with decoupled transaction policy");
        frontend.awaitNoMemory();
        assertThat(lastCall().isCancelled()).isTrue();
    }

    @Test
    void refusesInputsWithoutData() {
        ModelInferRequest.Builder none = request("fp32", "FP32", FOUR, 1, 0).clearRawInputContents();
        assertFails(
                () -> infer(none),
                INVALID_ARGUMENT,
                "unable to find data for input tensor 'INPUT0' for model 'fp32' in request.");

        ModelInferRequest.Builder fewer = request("fp32", "FP32", FOUR, 1, 4);
        fewer.addInputsBuilder().setName("INPUT1").setDatatype("FP32");
        assertFails(
                () -> infer(fewer),
                INVALID_ARGUMENT,
                "unable to find data for input tensor 'INPUT1' for model 'fp32' in request.");
    }

    @Test
    void refusesTypedContentsBesideRawOnes() {
        ModelInferRequest.Builder both = request("fp32", "FP32", FOUR, 1, 4);
        both.getInputsBuilder(0).setContents(InferTensorContents.getDefaultInstance());

        assertFails(
                () -> infer(both),
                INVALID_ARGUMENT,
                "contents field must not be specified when using raw_input_contents for 'INPUT0' for model 'fp32'");
    }

    @Test
    void refusesTypedContentsOfTheWrongType() {
        ModelInferRequest.Builder request = request("fp32", "FP16", FOUR, 1, 4).clearRawInputContents();
        request.getInputsBuilder(0).setContents(InferTensorContents.newBuilder().addFp32Contents(1));

        assertFails(
                () -> infer(request),
                INVALID_ARGUMENT,
                "unexpected explicit tensor data for input tensor 'INPUT0' for model 'fp32' of type 'FP32', expected"
                        + " datatype 'FP16'");
    }

    @Test
    void countsTypedContentsAsTheyAre() {
        ModelInferRequest.Builder empty = request("fp32", "FP32", FOUR, 1, 4).clearRawInputContents();
        empty.getInputsBuilder(0).setContents(InferTensorContents.getDefaultInstance());
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1)
                .responding(call -> call.fail(
                        ErrorCode.INVALID_ARGUMENT,
                        "got " + call.request().inputs().getFirst().data().byteSize())));

        assertFails(() -> infer(empty), INVALID_ARGUMENT, "got 0");
    }

    @Test
    void refusesShapesBeyondAllNumbers() {
        String text = "byte size for tensor 'INPUT0' exceeds maximum size of 9223372036854775807";

        assertFails(() -> infer(request("fp32", "FP32", FOUR, 1, 1L << 62)), INVALID_ARGUMENT, text);
        assertFails(() -> infer(request("fp32", "FP32", FOUR, 4, 1L << 62)), INVALID_ARGUMENT, text);
        assertFails(() -> infer(request("fp32", "FP32", FOUR, 1, Long.MAX_VALUE)), INVALID_ARGUMENT, text);
        assertFails(() -> infer(request("fp32", "BYTES", FOUR, 2, Long.MAX_VALUE)), INVALID_ARGUMENT, text);
    }

    @Test
    void refusesSharedMemoryThatIsNotThere() {
        ModelInferRequest.Builder input = request("fp32", "FP32", FOUR, 1, 4);
        input.getInputsBuilder(0)
                .putParameters("shared_memory_region", REGION)
                .putParameters("shared_memory_byte_size", SIXTEEN);
        assertFails(() -> infer(input), NOT_FOUND, "Unable to find shared memory region: 'r'");

        ModelInferRequest.Builder typed = input.clone();
        typed.getInputsBuilder(0).setContents(InferTensorContents.getDefaultInstance());
        assertFails(
                () -> infer(typed),
                INVALID_ARGUMENT,
                "unexpected 'content' provided when using shared memory for input tensor 'INPUT0' for model 'fp32'");

        ModelInferRequest.Builder output = request("fp32", "FP32", FOUR, 1, 4);
        output.addOutputsBuilder()
                .setName("OUTPUT0")
                .putParameters("shared_memory_region", REGION)
                .putParameters("shared_memory_byte_size", SIXTEEN);
        assertFails(() -> infer(output), NOT_FOUND, "Unable to find shared memory region: 'r'");

        output.getOutputsBuilder(0).putParameters("classification", SIXTEEN);
        assertFails(
                () -> infer(output),
                INVALID_ARGUMENT,
                "output can't set both 'shared_memory_region' and 'classification'");
    }

    @Test
    void requestsClassification() {
        ModelInferRequest.Builder request = request("fp32", "FP32", FOUR, 1, 4);
        request.addOutputsBuilder().setName("OUTPUT0").putParameters("classification", SIXTEEN);

        infer(request);

        assertThat(lastCall().request().outputs()).containsExactly(RequestedOutput.classified("OUTPUT0", 16));
    }

    @Test
    void readsInputsFromSharedMemory() {
        frontend.server.sharedMemory().register("r", "/key", 0, 64);
        MemorySegment shared = frontend.server.sharedMemory().memory("r");
        shared.asSlice(32, 16).copyFrom(MemorySegment.ofBuffer(FOUR.asReadOnlyByteBuffer()));
        ModelInferRequest.Builder request = request("elsewhere", "FP32", floats(9), 1, 4);
        request.getInputsBuilder(0)
                .putParameters("shared_memory_region", REGION)
                .putParameters(
                        "shared_memory_offset",
                        InferParameter.newBuilder().setInt64Param(32).build())
                .putParameters("shared_memory_byte_size", SIXTEEN);
        request.addInputsBuilder()
                .setName("INPUT1")
                .setDatatype("FP32")
                .addShape(1)
                .addShape(1);

        ModelInferResponse response = infer(request);

        assertThat(response.getRawOutputContentsList()).containsExactly(FOUR, floats(9));
        assertThat(lastCall().request().inputs().getFirst().data().address()).isEqualTo(shared.address() + 32);
        TestFrontend.await(() -> frontend.server.sharedMemory().leases() == 0);
    }

    @Test
    void refusesPartsThatDoNotLieInTheRegion() {
        frontend.server.sharedMemory().register("r", "/key", 0, 64);
        ModelInferRequest.Builder request = request("fp32", "FP32", FOUR, 1, 4);
        request.addOutputsBuilder()
                .setName("OUTPUT0")
                .putParameters("shared_memory_region", REGION)
                .putParameters("shared_memory_byte_size", SIXTEEN);
        request.getInputsBuilder(0)
                .putParameters("shared_memory_region", REGION)
                .putParameters(
                        "shared_memory_offset",
                        InferParameter.newBuilder().setInt64Param(-1).build())
                .putParameters("shared_memory_byte_size", SIXTEEN);
        assertFails(() -> infer(request), INVALID_ARGUMENT, "Invalid offset for shared memory region: 'r'");

        request.getInputsBuilder(0).clearParameters();
        request.getOutputsBuilder(0)
                .putParameters(
                        "shared_memory_offset",
                        InferParameter.newBuilder().setInt64Param(49).build());
        assertFails(() -> infer(request), INVALID_ARGUMENT, "Invalid offset + byte size for shared memory region: 'r'");
        assertThat(frontend.server.sharedMemory().leases()).isZero();
    }

    @Test
    void leavesOutputsInSharedMemory() {
        frontend.server.sharedMemory().register("r", "/key", 0, 64);
        frontend.server.add(FakeModel.identity("fp32", DataType.FP32, 64, -1).responding(call -> {
            MemorySegment target =
                    call.request().outputs().getFirst().target().orElseThrow().memory();
            target.copyFrom(call.request().inputs().getFirst().data());
            call.respond(
                    List.of(new NamedTensor("OUTPUT0", Tensor.of(DataType.FP32, Shape.of(1, 4), target))),
                    Map.of(),
                    true);
        }));
        ModelInferRequest.Builder request = request("fp32", "FP32", FOUR, 1, 4);
        request.addOutputsBuilder()
                .setName("OUTPUT0")
                .putParameters("shared_memory_region", REGION)
                .putParameters("shared_memory_byte_size", SIXTEEN);

        ModelInferResponse response = infer(request);

        assertThat(response.getOutputs(0).getShapeList()).containsExactly(1L, 4L);
        assertThat(response.getRawOutputContentsList()).containsExactly(ByteString.EMPTY);
        assertThat(ByteString.copyFrom(frontend.server
                        .sharedMemory()
                        .memory("r")
                        .asSlice(0, 16)
                        .asByteBuffer()))
                .isEqualTo(FOUR);
        TestFrontend.await(() -> frontend.server.sharedMemory().leases() == 0);
    }

    @Test
    void refusesWhenMemoryIsOut() {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("fp32");
        request.addInputsBuilder()
                .setName("INPUT0")
                .setDatatype("BYTES")
                .addShape(1)
                .setContents(InferTensorContents.newBuilder().addBytesContents(FOUR));

        try (TestFrontend small = new TestFrontend(_ -> {}, 10)) {
            small.server.add(FakeModel.identity("fp32", DataType.BYTES, 64, -1));
            assertFails(
                    () -> small.client.modelInfer(request.build()),
                    UNAVAILABLE,
                    "out of memory: 64 bytes wanted, 0 of 10 in use");
        }
    }
}
