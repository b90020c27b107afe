package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.InstalledServer;
import inference.GrpcPredictV2.InferTensorContents;
import inference.GrpcPredictV2.ModelInferRequest;
import inference.GrpcPredictV2.ModelInferResponse;
import inference.GrpcPredictV2.ModelMetadataResponse;
import inference.GrpcPredictV2.ModelReadyResponse;
import inference.GrpcPredictV2.ServerLiveResponse;
import inference.GrpcPredictV2.ServerMetadataResponse;
import inference.GrpcPredictV2.ServerReadyResponse;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.camel.CamelContext;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.impl.engine.SimpleCamelContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests all operations of Apache Camel's component for KServe. The component has its own copy of the messages. */
final class CamelIT {
    @TempDir
    private static Path models;

    private static InstalledServer server;
    private static CamelContext camel;
    private static ProducerTemplate client;

    @BeforeAll
    static void start() throws IOException {
        server = Echo.serve(models);
        camel = new SimpleCamelContext();
        camel.start();
        client = camel.createProducerTemplate();
    }

    @AfterAll
    static void stop() throws IOException {
        camel.stop();
        server.close();
    }

    @Test
    void findsTheServerReadyAndAlive() {
        assertThat(send("server/ready", "", null, ServerReadyResponse.class).getReady())
                .isTrue();
        assertThat(send("server/live", "", null, ServerLiveResponse.class).getLive())
                .isTrue();
    }

    @Test
    void readsWhatTheServerIs() {
        ServerMetadataResponse metadata = send("server/metadata", "", null, ServerMetadataResponse.class);

        assertThat(metadata.getName()).isEqualTo("nereid");
        assertThat(metadata.getVersion()).isNotEmpty();
        assertThat(metadata.getExtensionsList()).contains("binary_tensor_data");
    }

    @Test
    void findsModelsReadyOrNot() {
        assertThat(send("model/ready", "&modelName=add_sub", null, ModelReadyResponse.class)
                        .getReady())
                .isTrue();
        assertThat(send("model/ready", "&modelName=add_sub&modelVersion=1", null, ModelReadyResponse.class)
                        .getReady())
                .isTrue();
        assertThat(send("model/ready", "&modelName=nowhere", null, ModelReadyResponse.class)
                        .getReady())
                .isFalse();
    }

    @Test
    void readsWhatAModelTakes() {
        ModelMetadataResponse metadata =
                send("model/metadata", "&modelName=add_sub&modelVersion=1", null, ModelMetadataResponse.class);

        assertThat(metadata.getName()).isEqualTo("add_sub");
        assertThat(metadata.getVersionsList()).containsExactly("1");
        assertThat(metadata.getInputsList())
                .extracting(ModelMetadataResponse.TensorMetadata::getName)
                .containsExactly("INPUT0", "INPUT1");
        assertThat(metadata.getInputs(0).getShapeList()).containsExactly(-1L, 4L);
    }

    @Test
    void infersFromTypedContents() {
        ModelInferRequest request = ModelInferRequest.newBuilder()
                .setId("seven")
                .addInputs(integers("INPUT0", List.of(10, 20, 30, 40)))
                .addInputs(integers("INPUT1", List.of(1, 2, 3, 4)))
                .build();

        ModelInferResponse response = send("infer", "&modelName=add_sub", request, ModelInferResponse.class);

        assertThat(response.getId()).isEqualTo("seven");
        assertThat(response.getModelName()).isEqualTo("add_sub");
        assertThat(response.getModelVersion()).isEqualTo("1");
        assertThat(response.getRawOutputContents(0)
                        .asReadOnlyByteBuffer()
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .getInt())
                .isEqualTo(11);
    }

    @ParameterizedTest
    @MethodSource("dev.nereid.compatibility.Sample#all")
    void infersFromBytesOfEveryType(Sample sample) {
        ModelInferRequest request = ModelInferRequest.newBuilder()
                .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                        .setName("INPUT0")
                        .setDatatype(sample.datatype())
                        .addShape(sample.count()))
                .addRawInputContents(ByteString.copyFrom(sample.bytes()))
                .build();

        ModelInferResponse response =
                send("infer", "&modelName=" + sample.model() + "&modelVersion=1", request, ModelInferResponse.class);

        assertThat(response.getOutputs(0).getDatatype()).isEqualTo(sample.datatype());
        assertThat(response.getOutputs(0).getShapeList()).containsExactly((long) sample.count());
        assertThat(response.getRawOutputContents(0).toByteArray()).isEqualTo(sample.bytes());
    }

    @Test
    void takesModelAndVersionFromHeaders() {
        Map<String, Object> headers = Map.of("CamelKServeModelName", "add_sub", "CamelKServeModelVersion", "1");

        ModelMetadataResponse metadata =
                client.requestBodyAndHeaders(uri("model/metadata", ""), null, headers, ModelMetadataResponse.class);

        assertThat(metadata.getName()).isEqualTo("add_sub");
    }

    @Test
    void reportsMissingModels() {
        ModelInferRequest empty = ModelInferRequest.getDefaultInstance();

        assertThatThrownBy(() -> send("infer", "&modelName=nowhere", empty, ModelInferResponse.class))
                .hasRootCauseMessage("NOT_FOUND: Request for unknown model: 'nowhere' is not found");
    }

    private static ModelInferRequest.InferInputTensor integers(String name, List<Integer> elements) {
        return ModelInferRequest.InferInputTensor.newBuilder()
                .setName(name)
                .setDatatype("INT32")
                .addShape(1)
                .addShape(elements.size())
                .setContents(InferTensorContents.newBuilder().addAllIntContents(elements))
                .build();
    }

    private static <T> T send(String operation, String more, Object body, Class<T> response) {
        return client.requestBody(uri(operation, more), body, response);
    }

    private static String uri(String operation, String more) {
        return "kserve:" + operation + "?target=" + server.address("gRPC") + more;
    }
}
