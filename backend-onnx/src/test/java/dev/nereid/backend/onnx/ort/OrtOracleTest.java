package dev.nereid.backend.onnx.ort;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtSession.Result;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Compares with the artifact's own Java API, to the bit. */
class OrtOracleTest {
    private static final long OPEN_DIMENSION = 3;

    private final TestTensors tensors = new TestTensors();
    private OrtLibrary library;

    @BeforeEach
    void open() throws IOException, OrtException {
        library = TestModels.openLibrary();
    }

    @AfterEach
    void close() {
        library.close();
        tensors.close();
    }

    @ParameterizedTest
    @CsvSource({"mnist.onnx", "ultraface_rfb320.onnx", "mlp_256_random.onnx", "squeezenet1_1_random.onnx"})
    void computesTheSameBitsForARealModel(String name) throws OrtException, ai.onnxruntime.OrtException {
        computesTheSameBits(TestModels.sharedModel(name));
    }

    @Test
    void computesTheSameBitsForASmallModel() throws OrtException, ai.onnxruntime.OrtException {
        computesTheSameBits(TestModels.model("add_sub.onnx"));
    }

    private void computesTheSameBits(Path model) throws OrtException, ai.onnxruntime.OrtException {
        try (OrtSession session = OrtSession.open(library, model, OrtSessionOptions.DEFAULTS)) {
            List<MemorySegment> inputs =
                    session.inputs().stream().map(this::randomFloats).toList();

            List<byte[]> results = run(session, inputs);

            assertThat(results).isNotEmpty().containsExactlyElementsOf(expected(session, model, inputs));
        }
    }

    private List<byte[]> run(OrtSession session, List<MemorySegment> inputs) throws OrtException {
        List<byte[]> results = new ArrayList<>();
        try (OrtExecution execution = session.newExecution(Map.of())) {
            execution.begin();
            for (int i = 0; i < inputs.size(); i++) {
                execution.input(i, inputs.get(i), shape(session.inputs().get(i)));
            }
            for (int i = 0; i < session.outputs().size(); i++) {
                execution.output(i);
            }
            execution.run();
            for (int i = 0; i < session.outputs().size(); i++) {
                try (OrtValue output = execution.takeOutput(i)) {
                    results.add(TestTensors.bytes(output.data()));
                }
            }
            execution.end();
        }
        return results;
    }

    private static List<byte[]> expected(OrtSession session, Path model, List<MemorySegment> inputs)
            throws ai.onnxruntime.OrtException {
        Map<String, OnnxTensor> feeds = new LinkedHashMap<>();
        try (ai.onnxruntime.OrtSession oracle = TestModels.oracle().createSession(model.toString())) {
            for (int i = 0; i < inputs.size(); i++) {
                OrtTensorInfo info = session.inputs().get(i);
                var floats = inputs.get(i)
                        .asByteBuffer()
                        .order(ByteOrder.nativeOrder())
                        .asFloatBuffer();
                feeds.put(info.name(), OnnxTensor.createTensor(TestModels.oracle(), floats, shape(info)));
            }
            try (Result result = oracle.run(feeds)) {
                List<byte[]> expected = new ArrayList<>();
                for (OrtTensorInfo info : session.outputs()) {
                    OnnxTensor output = (OnnxTensor) result.get(info.name()).orElseThrow();
                    ByteBuffer bytes = output.getByteBuffer();
                    byte[] copy = new byte[bytes.remaining()];
                    bytes.get(copy);
                    expected.add(copy);
                }
                return expected;
            } finally {
                feeds.values().forEach(OnnxTensor::close);
            }
        }
    }

    private MemorySegment randomFloats(OrtTensorInfo info) {
        assertThat(info.type()).isEqualTo(OrtElementType.FLOAT);
        MemorySegment data = tensors.empty(info.type().byteSize(shape(info)));
        Random random = new Random(1);
        for (long i = 0; i < data.byteSize() / Float.BYTES; i++) {
            data.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
        }
        return data;
    }

    private static long[] shape(OrtTensorInfo info) {
        return info.dims().stream()
                .mapToLong(size -> size < 0 ? OPEN_DIMENSION : size)
                .toArray();
    }
}
