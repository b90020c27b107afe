package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import dev.nereid.distribution.testing.AccumulatorModel;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestServer;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** ONNX models whose state begins with START, with all types and ranks of control inputs. */
class AccumulatorIT {
    private static final String IDLE = "max_sequence_idle_microseconds: 900000000 ";
    private static final String DIRECT = IDLE + "direct { }";
    private static final String OLDEST = IDLE + "oldest { max_candidate_sequences: 8 }";
    private static final List<String> NUMERIC =
            List.of("fp32_int64", "int32_uint64", "bool_int32", "fp32_uint32", "flat_int32_uint64", "flat_bool_int64");
    private static final List<String> TEXT = List.of("int32_string", "flat_fp32_string");

    @TempDir
    private static Path directory;

    @RegisterExtension
    private static final ServerExtension server = new ServerExtension(() -> TestServer.of(models()));

    private static Repository models() {
        Repository models = new Repository(directory);
        new AccumulatorModel("FP32", "INT64", false).addTo(models, "fp32_int64", DIRECT, true);
        new AccumulatorModel("INT32", "UINT64", false).addTo(models, "int32_uint64", OLDEST, true);
        new AccumulatorModel("BOOL", "INT32", false).addTo(models, "bool_int32", DIRECT, false);
        new AccumulatorModel("FP32", "UINT32", false).addTo(models, "fp32_uint32", OLDEST, false);
        new AccumulatorModel("INT32", "UINT64", true).addTo(models, "flat_int32_uint64", DIRECT, false);
        new AccumulatorModel("BOOL", "INT64", true).addTo(models, "flat_bool_int64", OLDEST, true);
        new AccumulatorModel("INT32", "STRING", false).addTo(models, "int32_string", OLDEST, true);
        new AccumulatorModel("FP32", "STRING", true).addTo(models, "flat_fp32_string", DIRECT, false);
        return models;
    }

    @Test
    void numbersAsIds() throws IOException {
        for (String model : NUMERIC) {
            sums(model, Value.newBuilder().setNumberValue(70_001).build());
        }
    }

    @Test
    void textsAsIds() throws IOException {
        for (String model : TEXT) {
            sums(model, Value.newBuilder().setStringValue("speaker").build());
        }
    }

    /** One sequence over both protocols, twice: the second time it begins where START says. */
    private static void sums(String model, Value id) throws IOException {
        for (int round = 0; round < 2; round++) {
            assertThat(overHttp(model, 5, id, "sequence_start")).as(model).isEqualTo(5);
            assertThat(overGrpc(model, 7, id, "none")).as(model).isEqualTo(12);
            assertThat(overHttp(model, 1, id, "none")).as(model).isEqualTo(13);
            assertThat(overGrpc(model, 2, id, "sequence_start")).as(model).isEqualTo(2);
            assertThat(overGrpc(model, 3, id, "sequence_end")).as(model).isEqualTo(5);
        }
    }

    private static float overHttp(String model, int value, Value id, String flag) throws IOException {
        boolean isText = id.hasStringValue();
        String body = "{\"parameters\":{\"sequence_id\":"
                + (isText ? "\"" + id.getStringValue() + "\"" : (long) id.getNumberValue()) + ",\"" + flag
                + "\":true},\"inputs\":[{\"name\":\"INPUT\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":["
                + value + "]}]}";
        Struct response = server.connection()
                .exchange(("POST /v2/models/" + model + "/infer HTTP/1.1\r\nHost: x\r\n" + "Content-Length: "
                                + body.length() + "\r\n\r\n" + body)
                        .getBytes(UTF_8))
                .json();
        float sum = Float.NaN;
        for (Value output : response.getFieldsOrThrow("outputs").getListValue().getValuesList()) {
            Struct tensor = output.getStructValue();
            Value element = tensor.getFieldsOrThrow("data").getListValue().getValues(0);
            switch (tensor.getFieldsOrThrow("name").getStringValue()) {
                case "OUTPUT" -> sum = (float) element.getNumberValue();
                case "ID" -> assertThat(element).isEqualTo(id);
                default -> assertThat((float) element.getNumberValue()).isEqualTo(sum);
            }
        }
        return sum;
    }

    private static float overGrpc(String model, int value, Value id, String flag) {
        InferParameter.Builder parameter = InferParameter.newBuilder();
        if (id.hasStringValue()) {
            parameter.setStringParam(id.getStringValue());
        } else {
            parameter.setInt64Param((long) id.getNumberValue());
        }
        ByteBuffer data = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(value);
        ModelInferResponse response = GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .modelInfer(ModelInferRequest.newBuilder()
                        .setModelName(model)
                        .putParameters("sequence_id", parameter.build())
                        .putParameters(
                                flag,
                                InferParameter.newBuilder().setBoolParam(true).build())
                        .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                                .setName("INPUT")
                                .setDatatype("FP32")
                                .addShape(1)
                                .addShape(1))
                        .addRawInputContents(ByteString.copyFrom(data.flip()))
                        .build());
        float sum = Float.NaN;
        for (int i = 0; i < response.getOutputsCount(); i++) {
            ByteBuffer content = response.getRawOutputContents(i).asReadOnlyByteBuffer();
            content.order(ByteOrder.LITTLE_ENDIAN);
            switch (response.getOutputs(i).getName()) {
                case "OUTPUT" -> sum = content.getFloat();
                case "ID" -> {
                    if (id.hasStringValue()) {
                        assertThat(content.getInt())
                                .isEqualTo(id.getStringValue().length());
                        assertThat(UTF_8.decode(content).toString()).isEqualTo(id.getStringValue());
                    } else {
                        assertThat((double) content.getInt()).isEqualTo(id.getNumberValue());
                    }
                }
                default -> assertThat(content.getFloat()).isEqualTo(sum);
            }
        }
        return sum;
    }
}
