package dev.nereid.backend.onnx;

import static dev.nereid.backend.onnx.TestConfig.accelerator;
import static dev.nereid.backend.onnx.TestConfig.gpu;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.backend.onnx.ort.TestGpu;
import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.backend.onnx.ort.TestTensors;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares instances of one model on the first GPU and on the CPU. */
@Tag("gpu")
class OnnxGpuTest {
    private static final float TOLERANCE = 1e-3f;
    private static final Device GPU = new Device(Device.Kind.GPU, 0);

    /** By default products are computed with 10 bits of precision (TF32) where the GPU can, and differ more. */
    private static final Map<String, String> EXACT = Map.of("use_tf32", "0");

    private Backend backend;

    @BeforeEach
    void open() {
        ClassLoader artifact = TestGpu.artifact();
        TestGpu.open().close();
        backend = OnnxBackend.open(TestBackend.context(Map.of()), artifact);
    }

    @AfterEach
    void close() {
        if (backend != null) {
            backend.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"mlp_256_random.onnx", "squeezenet1_1_random.onnx", "mnist.onnx", "ultraface_rfb320.onnx"})
    void computesWithCudaWhatTheCpuComputes(String file) throws Exception {
        agrees(completed(TestModels.sharedModel(file)).json(gpu(accelerator("cuda", EXACT))));
    }

    @Test
    void computesWithTensorRtWhatTheCpuComputes() throws Exception {
        assumeTrue(TestGpu.isThere("libnvinfer.so.10"), "libnvinfer.so.10 is absent: TensorRT 10");
        agrees(completed(TestModels.sharedModel("mnist.onnx"))
                .json(gpu(accelerator("tensorrt", Map.of("precision_mode", "FP32")), accelerator("cuda", EXACT))));
    }

    @Test
    void passesOnWhatOnnxRuntimeSaysAboutAnOptionThatItDoesNotKnow() {
        ModelSettings settings = completed(TestModels.model("add_sub.onnx"))
                .json(gpu(accelerator("cuda", Map.of("no_such", "1"))))
                .build();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> backend.load(TestBackend.model(settings, GPU)))
                .withMessageContaining("Unknown provider option: \"no_such\"");
    }

    private void agrees(ModelSettingsBuilder builder) {
        ModelSettings settings = builder.build();
        try (Model model = backend.load(TestBackend.model(settings, Device.CPU, GPU));
                ModelInstance onCpu = model.newInstance(new FakeInstanceContext("0"));
                ModelInstance onGpu = model.newInstance(new FakeInstanceContext("1", GPU, List.of()))) {
            for (int seed = 0; seed < 3; seed++) {
                Map<String, float[]> expected = run(onCpu, settings, seed);
                assertClose(run(onGpu, settings, seed), expected);
            }
        }
    }

    /** Instances on one GPU share a session, and run it at the same time. */
    @Test
    void runsSeveralInstancesOnOneGpuAtATime() throws Exception {
        ModelSettings settings = completed(TestModels.sharedModel("squeezenet1_1_random.onnx"))
                .json(gpu(accelerator("cuda", EXACT)))
                .build();
        try (Model model = backend.load(TestBackend.model(settings, Device.CPU, GPU, GPU));
                ModelInstance onCpu = model.newInstance(new FakeInstanceContext("0"));
                ExecutorService executor = Executors.newFixedThreadPool(2)) {
            List<Map<String, float[]>> expected = List.of(run(onCpu, settings, 0), run(onCpu, settings, 1));
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                ModelInstance instance = model.newInstance(new FakeInstanceContext("g" + i, GPU, List.of()));
                int seed = i;
                all.add(executor.submit(() -> {
                    try (instance) {
                        for (int run = 0; run < 50; run++) {
                            assertClose(run(instance, settings, seed), expected.get(seed));
                        }
                    }
                    return null;
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        }
    }

    private static void assertClose(Map<String, float[]> actual, Map<String, float[]> expected) {
        assertThat(actual).containsOnlyKeys(expected.keySet());
        expected.forEach(
                (name, values) -> assertThat(actual.get(name)).as(name).containsExactly(values, within(TOLERANCE)));
    }

    private static Map<String, float[]> run(ModelInstance instance, ModelSettings settings, int seed) {
        List<String> outputs = settings.outputs().stream().map(TensorSpec::name).toList();
        FakeRequest request = new FakeRequest(1, outputs);
        try (TestTensors tensors = new TestTensors();
                LeakCheckingMemory memory = new LeakCheckingMemory()) {
            for (TensorSpec input : settings.inputs()) {
                Shape dims = input.backendDims();
                request.with(input.name(), random(tensors, settings.batches() ? dims.prepend(1) : dims, seed));
            }
            try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
                instance.execute(batch);
                Map<String, float[]> results = new LinkedHashMap<>();
                batch.outputs().forEach((name, tensor) -> results.put(name, tensor.floats()));
                return results;
            }
        }
    }

    private static Tensor random(TestTensors tensors, Shape shape, int seed) {
        MemorySegment data = tensors.empty(shape.byteSize(DataType.FP32));
        Random random = new Random(seed);
        for (long i = 0; i < shape.elementCount(); i++) {
            data.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat() - 0.5f);
        }
        return Tensor.of(DataType.FP32, shape, data);
    }

    private ModelSettingsBuilder completed(Path model) {
        String file = model.toAbsolutePath().toString();
        ModelSettings empty = ModelSettings.builder("m", 1).modelFilename(file).build();
        ModelCompletion completion = backend.complete(TestBackend.model(empty)).orElseThrow();
        ModelSettingsBuilder settings = ModelSettings.builder("m", 1)
                .modelFilename(file)
                .maxBatchSize(completion.proposedMaxBatchSize().orElseThrow());
        completion.inputs().forEach(settings::input);
        completion.outputs().forEach(settings::output);
        return settings;
    }
}
