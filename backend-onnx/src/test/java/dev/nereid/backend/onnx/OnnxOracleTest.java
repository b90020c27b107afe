package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.NodeInfo;
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtSession.Result;
import ai.onnxruntime.TensorInfo;
import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Compares real models with the artifact's own Java API. Completes, loads and runs the models without a configuration.
 */
class OnnxOracleTest {
    private static final long CHUNK = 576;
    private static final long STATE = 128;
    private static final long SAMPLE_RATE = 16_000;

    private final TestTensors tensors = new TestTensors();
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @AfterEach
    void close() {
        tensors.close();
        memory.close();
    }

    @ParameterizedTest
    @CsvSource({"mlp_256_random.onnx, 1", "mlp_256_random.onnx, 3", "squeezenet1_1_random.onnx, 2"})
    void computesTheSameBitsForABatchOfSeveralRequests(String file, int requests) throws Exception {
        Path model = TestModels.sharedModel(file);
        try (TestBackend backend = new TestBackend()) {
            ModelSettingsBuilder settings = completed(backend, model);
            TensorSpec spec = settings.build().inputs().getFirst();
            FakeRequest[] parts = new FakeRequest[requests];
            for (int i = 0; i < requests; i++) {
                Shape shape = spec.backendDims().prepend(1);
                parts[i] = request(settings).with(spec.name(), random(DataType.FP32, shape, i));
            }
            try (FakeBatch batch = new FakeBatch(settings.build(), memory, parts)) {
                backend.instance(settings).execute(batch);

                assertSame(batch, model);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"mnist.onnx, FP32", "ultraface_rfb320.onnx, FP32", "squeezenet_fp16.onnx, FP16"})
    void computesTheSameBitsForAModelOfFixedShapes(String file, DataType type) throws Exception {
        Path model = TestModels.sharedModel(file);
        try (TestBackend backend = new TestBackend()) {
            ModelSettingsBuilder settings = completed(backend, model);
            TensorSpec spec = settings.build().inputs().getFirst();
            FakeRequest request = request(settings).with(spec.name(), random(type, spec.dims(), 1));
            try (FakeBatch batch = new FakeBatch(settings.build(), memory, request)) {
                backend.instance(settings).execute(batch);

                assertThat(batch.allocated()).containsAll(batch.outputs().keySet());
                assertSame(batch, model);
            }
        }
    }

    @Test
    void computesTheSameBitsForAModelWithAScalarAndOpenShapes() throws Exception {
        Path model = TestModels.sharedModel("silero_vad.onnx");
        try (TestBackend backend = new TestBackend()) {
            ModelSettingsBuilder settings = completed(backend, model);
            FakeRequest request = request(settings)
                    .with("input", random(DataType.FP32, Shape.of(1, CHUNK), 1))
                    .with("state", random(DataType.FP32, Shape.of(2, 1, STATE), 2))
                    .with("sr", Tensor.of(DataType.INT64, Shape.of(1), tensors.longs(SAMPLE_RATE)));
            try (FakeBatch batch = new FakeBatch(settings.build(), memory, request)) {
                backend.instance(settings).execute(batch);

                assertThat(batch.outputs()).containsOnlyKeys("output", "stateN");
                assertSame(batch, model);
            }
        }
    }

    /** Returns settings completed by the backend, as the server would complete them. */
    private static ModelSettingsBuilder completed(TestBackend backend, Path model) {
        String file = model.toAbsolutePath().toString();
        ModelSettings empty = ModelSettings.builder("m", 1).modelFilename(file).build();
        ModelCompletion completion =
                backend.backend.complete(TestBackend.model(empty)).orElseThrow();
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(file)
                .maxBatchSize(completion.proposedMaxBatchSize().orElseThrow());
        completion.inputs().forEach(settings::input);
        completion.outputs().forEach(settings::output);
        return settings;
    }

    private static FakeRequest request(ModelSettingsBuilder settings) {
        List<String> outputs =
                settings.build().outputs().stream().map(TensorSpec::name).toList();
        return new FakeRequest(1, outputs);
    }

    private static void assertSame(FakeBatch batch, Path model) throws Exception {
        Map<String, byte[]> expected = oracle(batch, model);
        assertThat(batch.outputs()).containsOnlyKeys(expected.keySet());
        for (Map.Entry<String, Tensor> output : batch.outputs().entrySet()) {
            assertThat(TestTensors.bytes(output.getValue().data())).isEqualTo(expected.get(output.getKey()));
        }
    }

    private static Map<String, byte[]> oracle(FakeBatch batch, Path model) throws Exception {
        Map<String, OnnxTensor> feeds = new LinkedHashMap<>();
        try (ai.onnxruntime.OrtSession oracle = TestModels.oracle().createSession(model.toString())) {
            for (Map.Entry<String, NodeInfo> input : oracle.getInputInfo().entrySet()) {
                feeds.put(input.getKey(), feed(batch.gather(input.getKey()), (TensorInfo)
                        input.getValue().getInfo()));
            }
            try (Result result = oracle.run(feeds)) {
                Map<String, byte[]> expected = new LinkedHashMap<>();
                for (Map.Entry<String, ai.onnxruntime.OnnxValue> output : result) {
                    ByteBuffer bytes = ((OnnxTensor) output.getValue()).getByteBuffer();
                    byte[] copy = new byte[bytes.remaining()];
                    bytes.get(copy);
                    expected.put(output.getKey(), copy);
                }
                return expected;
            } finally {
                feeds.values().forEach(OnnxTensor::close);
            }
        }
    }

    private static OnnxTensor feed(Tensor tensor, TensorInfo info) throws ai.onnxruntime.OrtException {
        long[] shape =
                info.getShape().length == 0 ? new long[0] : tensor.shape().toArray();
        ByteBuffer bytes = tensor.data().asByteBuffer().order(ByteOrder.nativeOrder());
        OnnxJavaType type = info.type;
        return OnnxTensor.createTensor(TestModels.oracle(), bytes, shape, type);
    }

    private Tensor random(DataType type, Shape shape, int seed) {
        MemorySegment data = tensors.empty(shape.byteSize(type));
        Random random = new Random(seed);
        for (long i = 0; i < shape.elementCount(); i++) {
            float value = random.nextFloat() - 0.5f;
            if (type == DataType.FP16) {
                data.setAtIndex(ValueLayout.JAVA_SHORT, i, Float.floatToFloat16(value));
            } else {
                data.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
            }
        }
        return Tensor.of(type, shape, data);
    }
}
