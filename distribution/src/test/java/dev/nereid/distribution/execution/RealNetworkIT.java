package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.Picture;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that real networks return the same outputs as without a server. They are served over both protocols, without a
 * configuration.
 */
class RealNetworkIT {
    private static final String SQUEEZENET = "squeezenet_fp16";
    private static final String MNIST = "mnist";
    private static final String ULTRAFACE = "ultraface_rfb320";
    private static final long SEED = 20_260_614;

    @TempDir
    private static Path directory;

    @RegisterExtension
    private static final ServerExtension server = new ServerExtension(() -> TestServer.of(models()));

    private static Repository models() {
        Repository models = new Repository(directory);
        for (String name : List.of(SQUEEZENET, MNIST, ULTRAFACE)) {
            models.onnx(name, model(name));
        }
        return models;
    }

    @ParameterizedTest
    @CsvSource({"cat.jpg, 282, tiger cat", "dog.jpg, 248, Eskimo dog", "pelican.jpg, 144, pelican"})
    void classifiesAPicture(String picture, int label, String name) throws IOException {
        ClientRequest question = ClientRequest.of(SQUEEZENET)
                .input(
                        "data_0",
                        "FP16",
                        Picture.halves(TestPaths.shared("images").resolve(picture)),
                        1,
                        3,
                        224,
                        224);

        byte[] overGrpc = overGrpc(question).get("softmaxout_1");
        byte[] overHttp = overHttp(question).get("softmaxout_1");

        assertThat(overGrpc).hasSize(1000 * Short.BYTES);
        assertThat(TensorBytes.indexOfLargest(halves(overGrpc))).isEqualTo(label);
        assertThat(Files.readAllLines(TestPaths.shared("models").resolve("imagenet_labels.txt"))
                        .get(label))
                .contains(name);
        assertThat(overHttp).isEqualTo(overGrpc);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5})
    void readsDigitsToTheBitAsWithoutAServer(int round) throws IOException, OrtException {
        respondsToTheBit(MNIST, "Input3", round, 1, 1, 28, 28);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void findsFacesToTheBitAsWithoutAServer(int round) throws IOException, OrtException {
        respondsToTheBit(ULTRAFACE, "input", round, 1, 3, 240, 320);
    }

    private static void respondsToTheBit(String model, String input, int round, long... shape)
            throws IOException, OrtException {
        Random random = new Random(SEED + round);
        float[] values = new float[(int) Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
        for (int i = 0; i < values.length; i++) {
            values[i] = 2 * random.nextFloat() - 1;
        }
        ClientRequest question = ClientRequest.of(model).input(input, "FP32", TensorBytes.floats(values), shape);

        Map<String, byte[]> expected = alone(model(model), question);

        assertThat(expected).isNotEmpty();
        assertSame(overGrpc(question), expected);
        assertSame(overHttp(question), expected);
    }

    private static void assertSame(Map<String, byte[]> outputs, Map<String, byte[]> expected) {
        assertThat(outputs.keySet()).isEqualTo(expected.keySet());
        expected.forEach((name, bytes) -> assertThat(outputs.get(name)).as(name).isEqualTo(bytes));
    }

    /** Runs the model by ONNX Runtime's own Java interface. */
    private static Map<String, byte[]> alone(Path model, ClientRequest question) throws OrtException {
        ClientRequest.Input input = question.inputs().getFirst();
        ByteBuffer data = ByteBuffer.allocateDirect(input.data().length).order(ByteOrder.nativeOrder());
        data.put(input.data()).flip();
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        environment.setTelemetry(false);
        long[] shape = input.shape().stream().mapToLong(Long::longValue).toArray();
        Map<String, byte[]> outputs = new LinkedHashMap<>();
        try (OrtSession session = environment.createSession(model.toString());
                OnnxTensor tensor = OnnxTensor.createTensor(environment, data, shape, OnnxJavaType.FLOAT);
                OrtSession.Result result = session.run(Map.of(input.name(), tensor))) {
            for (Map.Entry<String, OnnxValue> output : result) {
                ByteBuffer bytes = ((OnnxTensor) output.getValue()).getByteBuffer();
                byte[] copy = new byte[bytes.remaining()];
                bytes.get(copy);
                outputs.put(output.getKey(), copy);
            }
        }
        return outputs;
    }

    private static Map<String, byte[]> overGrpc(ClientRequest question) {
        ModelInferResponse response = GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .withDeadlineAfter(60, TimeUnit.SECONDS)
                .modelInfer(question.overGrpc());
        Map<String, byte[]> outputs = new LinkedHashMap<>();
        for (int i = 0; i < response.getOutputsCount(); i++) {
            outputs.put(
                    response.getOutputs(i).getName(),
                    response.getRawOutputContents(i).toByteArray());
        }
        return outputs;
    }

    private static Map<String, byte[]> overHttp(ClientRequest question) throws IOException {
        try (HttpConnection connection = server.http()) {
            RawHttpResponse response = connection.exchange(question.overHttp());
            assertThat(response.status()).as(() -> response.error()).isEqualTo(200);
            return response.binaryOutputs();
        }
    }

    private static float[] halves(byte[] bytes) {
        float[] values = new float[bytes.length / Short.BYTES];
        ByteBuffer source = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < values.length; i++) {
            values[i] = Float.float16ToFloat(source.getShort());
        }
        return values;
    }

    private static Path model(String name) {
        Path file = TestPaths.shared("models").resolve(name + ".onnx");
        assumeTrue(Files.exists(file), () -> file.getFileName() + " is not there");
        return file;
    }
}
