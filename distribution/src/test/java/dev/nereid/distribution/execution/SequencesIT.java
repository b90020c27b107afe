package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Sequences of the example backends, over both protocols and in process. */
class SequencesIT {
    private static final int TIMEOUT_SECONDS = 20;
    private static final String START = "\"sequence_start\":true";
    private static final String END = "\"sequence_end\":true";

    @RegisterExtension
    private static final ServerExtension server =
            new ServerExtension(() -> ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                    .withPlugins(TestPaths.plugins()));

    @Test
    void oneSequenceOverBothProtocolsAndInProcess() throws Exception {
        for (String model : List.of("sequence", "dyna_sequence")) {
            assertThat(overHttp(model, 5, "\"sequence_id\":7," + START)).isEqualTo(5);
            assertThat(overGrpc(model, 10, 7, false)).isEqualTo(15);
            assertThat(inProcess(model, 20, new Sequence.Id.Numeric(7))).isEqualTo(35);
            int id = model.equals("sequence") ? 0 : 7; // which the example adds at the end
            assertThat(overHttp(model, 1, "\"sequence_id\":7," + END)).isEqualTo(36 + id);
        }
    }

    @Test
    void refusesWhatFitsNoSequence() throws Exception {
        String notStarted =
                "inference request for sequence 8 to model 'sequence' must specify the START flag on the first"
                        + " request of the sequence";
        assertThat(send("sequence", 1, "\"sequence_id\":8").error()).isEqualTo(notStarted);
        assertThatThrownBy(() -> overGrpc("sequence", 1, 8, false))
                .isInstanceOf(StatusRuntimeException.class)
                .hasMessage("INVALID_ARGUMENT: " + notStarted);
        String noId = "inference request to model 'sequence' must specify a non-zero or non-empty correlation ID";
        assertThat(send("sequence", 1, "").error()).isEqualTo(noId);
        assertThat(send("sequence", 1, "\"sequence_id\":\"\"," + START).error()).isEqualTo(noId);
        assertThatThrownBy(() -> overGrpc("sequence", 1, 0, true)).hasMessage("INVALID_ARGUMENT: " + noId);
    }

    @Test
    void refusesBatches() throws Exception {
        String text = "inference request to model 'dyna_sequence' must specify batch-size 1 due to requirements of"
                + " sequence batcher";
        String body = "{\"parameters\":{\"sequence_id\":9," + START + "},\"inputs\":[{\"name\":\"INPUT\","
                + "\"datatype\":\"INT32\",\"shape\":[2,1],\"data\":[1,2]}]}";
        assertThat(post("dyna_sequence", body).error()).isEqualTo(text);
        ModelInferRequest.Builder request = grpcRequest("dyna_sequence", 1, number(9), true);
        request.getInputsBuilder(0).setShape(0, 2);
        request.setRawInputContents(0, ByteString.copyFrom(new byte[2 * Integer.BYTES]));
        assertThatThrownBy(() -> GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                        .modelInfer(request.build()))
                .hasMessage("INVALID_ARGUMENT: " + text);
    }

    @Test
    void idsHaveTheTypeOfTheControl() throws Exception {
        String text = "sequence batching control 'CORRID' data-type is 'BYTES', but model 'dyna_sequence' expects"
                + " 'UINT64'";
        assertThat(send("dyna_sequence", 1, "\"sequence_id\":\"a\"," + START).error())
                .isEqualTo("[request id: <id_unknown>] " + text);
        ModelInferRequest request = grpcRequest(
                        "dyna_sequence",
                        1,
                        InferParameter.newBuilder().setStringParam("a").build(),
                        true)
                .build();
        assertThatThrownBy(() -> GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                        .modelInfer(request))
                .hasMessage("INVALID_ARGUMENT: [request id: <id_unknown>] " + text);
    }

    private static int overHttp(String model, int value, String parameters) throws IOException {
        return (int) send(model, value, parameters)
                .json()
                .getFieldsOrThrow("outputs")
                .getListValue()
                .getValues(0)
                .getStructValue()
                .getFieldsOrThrow("data")
                .getListValue()
                .getValues(0)
                .getNumberValue();
    }

    private static RawHttpResponse send(String model, int value, String parameters) throws IOException {
        String body = "{\"parameters\":{" + parameters + "},\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"INT32\","
                + "\"shape\":[1,1],\"data\":[" + value + "]}]}";
        return post(model, body);
    }

    private static RawHttpResponse post(String model, String body) throws IOException {
        return server.connection()
                .exchange(("POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length()
                                + "\r\n\r\n" + body)
                        .getBytes(UTF_8));
    }

    private static int overGrpc(String model, int value, long id, boolean start) {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .modelInfer(grpcRequest(model, value, number(id), start).build())
                .getRawOutputContents(0)
                .asReadOnlyByteBuffer()
                .order(ByteOrder.LITTLE_ENDIAN)
                .getInt();
    }

    private static InferParameter number(long id) {
        return InferParameter.newBuilder().setInt64Param(id).build();
    }

    private static ModelInferRequest.Builder grpcRequest(String model, int value, InferParameter id, boolean start) {
        ByteBuffer data = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value);
        return ModelInferRequest.newBuilder()
                .setModelName(model)
                .putParameters("sequence_id", id)
                .putParameters(
                        "sequence_start",
                        InferParameter.newBuilder().setBoolParam(start).build())
                .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                        .setName("INPUT")
                        .setDatatype("INT32")
                        .addShape(1)
                        .addShape(1))
                .addRawInputContents(ByteString.copyFrom(data.flip()));
    }

    private static int inProcess(String model, int value, Sequence.Id id) throws Exception {
        Tensor input =
                Tensor.of(DataType.INT32, Shape.of(1, 1), Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, value));
        CompletableFuture<Integer> result = new CompletableFuture<>();
        RequestOptions options =
                new RequestOptions(0, 0, OptionalLong.empty(), Optional.of(new Sequence(id, false, false)));
        InferRequest request = new InferRequest(
                ModelRef.latest(model),
                "",
                List.of(InputTensor.of("INPUT", input)),
                List.of(),
                Map.of(),
                options,
                () -> {});
        server.server().infer(request, new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                result.complete(response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_INT_UNALIGNED, 0));
                response.close();
            }

            @Override
            public void onCompleted() {
                result.completeExceptionally(new InferenceException(ErrorCode.INTERNAL, "no response"));
            }

            @Override
            public void onError(InferenceException error) {
                result.completeExceptionally(error);
            }
        });
        return result.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }
}
