package dev.nereid.backend.pytorch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Models of PyTorch for Python: the values that Python computes for them; and other files of it, which are refused. */
class PythonOracleIT {
    @TempDir
    private static Path root;

    private static Path marker;

    @BeforeAll
    static void write() throws IOException, InterruptedException {
        marker = root.resolve("marker");
        PythonModels.write(root, marker);
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return TensorSpec.of(name, type, Shape.of(dims));
    }

    private static ByteBuffer read(String model, String name) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(root.resolve(model).resolve(name + ".bin")))
                .order(ByteOrder.LITTLE_ENDIAN);
    }

    private static float[] floats(String model, String name) throws IOException {
        ByteBuffer bytes = read(model, name);
        float[] values = new float[bytes.remaining() / Float.BYTES];
        bytes.asFloatBuffer().get(values);
        return values;
    }

    private static long[] longs(String model, String name) throws IOException {
        ByteBuffer bytes = read(model, name);
        long[] values = new long[bytes.remaining() / Long.BYTES];
        bytes.asLongBuffer().get(values);
        return values;
    }

    private static void isClose(Tensor actual, float... expected) {
        float[] values = actual.floats();
        assertThat(values).hasSameSizeAs(expected);
        for (int i = 0; i < values.length; i++) {
            assertThat(values[i])
                    .as("element %d", i)
                    .isCloseTo(expected[i], within(1e-5f + 1e-4f * Math.abs(expected[i])));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"resnet_traced", "resnet_scripted"})
    void resnet(String model) throws IOException {
        ModelSettingsBuilder settings = settings()
                .maxBatchSize(8)
                .input(spec("x", DataType.FP32, 3, 96, 96))
                .output(spec("OUTPUT__0", DataType.FP32, 1000));
        float[] image = floats(model, "x");
        float[] expected = floats(model, "OUTPUT__0");
        try (CheckedBackend test = new CheckedBackend(root.resolve(model))) {
            ModelInstance instance = test.instance(test.load(settings));
            Map<String, Tensor> both = Map.of("x", Tensor.ofFloats(Shape.of(2, 3, 96, 96), image));
            Map<String, Tensor> first =
                    Map.of("x", Tensor.ofFloats(Shape.of(1, 3, 96, 96), Arrays.copyOf(image, image.length / 2)));

            for (int i = 0; i < 3; i++) {
                isClose(test.run(instance, settings, 2, both).get("OUTPUT__0"), expected);
                isClose(test.run(instance, settings, 1, first).get("OUTPUT__0"), Arrays.copyOf(expected, 1000));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, true", "false, false"})
    void lstmOverSteps(String inference, String unoptimized) throws IOException {
        ModelSettingsBuilder settings = settings()
                .input(spec("x", DataType.FP32, 1, 3, 8))
                .input(spec("h", DataType.FP32, 2, 1, 16))
                .input(spec("c", DataType.FP32, 2, 1, 16))
                .output(spec("y__0", DataType.FP32, 1, 3, 16))
                .output(spec("h__1", DataType.FP32, 2, 1, 16))
                .output(spec("c__2", DataType.FP32, 2, 1, 16));
        try (CheckedBackend test = new CheckedBackend(root.resolve("lstm"))
                .with("INFERENCE_MODE", inference)
                .with("DISABLE_OPTIMIZED_EXECUTION", unoptimized)) {
            ModelInstance instance = test.instance(test.load(settings));
            Tensor h = Tensor.ofFloats(Shape.of(2, 1, 16), new float[32]);
            Tensor c = h;
            for (int step = 0; step < 5; step++) {
                Tensor x = Tensor.ofFloats(Shape.of(1, 3, 8), floats("lstm", "x" + step));
                Map<String, Tensor> outputs = test.run(instance, settings, 1, Map.of("x", x, "h", h, "c", c));
                isClose(outputs.get("y__0"), floats("lstm", "y" + step));
                h = outputs.get("h__1");
                c = outputs.get("c__2");
                isClose(h, floats("lstm", "h" + step));
                isClose(c, floats("lstm", "c" + step));
            }
        }
    }

    @Test
    void texts() throws IOException {
        ModelSettingsBuilder settings =
                settings().input(spec("texts", DataType.BYTES, -1)).output(spec("OUTPUT__0", DataType.FP32, -1, 3));
        Tensor texts = Tensor.ofStrings(Shape.of(4), List.of("Cat dog", "bird unheard", "", "größe größe cat"));
        try (CheckedBackend test = new CheckedBackend(root.resolve("texts"))) {
            isClose(test.run(settings, 1, Map.of("texts", texts)).get("OUTPUT__0"), floats("texts", "OUTPUT__0"));
        }
    }

    @Test
    void dictionaries() throws IOException {
        ModelSettingsBuilder settings = settings()
                .maxBatchSize(8)
                .input(spec("right", DataType.FP32, 4))
                .input(spec("left", DataType.FP32, 2))
                .output(spec("best", DataType.INT64, 1).withReshape(Shape.SCALAR))
                .output(spec("logits", DataType.FP32, 4))
                .output(spec("left", DataType.FP32, 2));
        Tensor left = Tensor.ofFloats(Shape.of(5, 2), floats("dictionary", "left"));
        Tensor right = Tensor.ofFloats(Shape.of(5, 4), floats("dictionary", "right"));
        try (CheckedBackend test = new CheckedBackend(root.resolve("dictionary"))) {
            Map<String, Tensor> outputs = test.run(settings, 5, Map.of("left", left, "right", right));

            isClose(outputs.get("logits"), floats("dictionary", "out_logits"));
            assertThat(outputs.get("best").longs()).containsExactly(longs("dictionary", "out_best"));
            assertThat(outputs.get("left").floats()).containsExactly(floats("dictionary", "left"));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"embedding", "embedding_traced"})
    void embeddings(String model) throws IOException {
        ModelSettingsBuilder settings = settings()
                .input(spec("ids", DataType.INT64, -1, -1))
                .output(spec("OUTPUT__0", DataType.FP32, -1, -1, 16));
        Tensor ids = Tensor.ofLongs(Shape.of(3, 7), longs(model, "ids"));
        try (CheckedBackend test = new CheckedBackend(root.resolve(model))) {
            isClose(test.run(settings, 1, Map.of("ids", ids)).get("OUTPUT__0"), floats(model, "OUTPUT__0"));
        }
    }

    @Test
    void operatorOfTorchvision() {
        ModelSettingsBuilder settings = settings()
                .input(spec("boxes", DataType.FP32, -1, 4))
                .input(spec("scores", DataType.FP32, -1))
                .output(spec("OUTPUT__0", DataType.INT64, -1));
        try (CheckedBackend test = new CheckedBackend(root.resolve("nms"))) {
            assertThat(test.refusal(settings))
                    .message()
                    .startsWith("failed to load model 'm': ")
                    .contains(
                            "The operator torchvision::nms is not part of PyTorch, but of torchvision, whose operators"
                                    + " are not there");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "state_dict.pt, 'a state_dict, which has the weights of a model without its code'",
        "state_dict_legacy.pt, 'a pickle, as torch.save wrote it before PyTorch 1.6, whose code is never run'",
        "module.pt, 'a pickled object of Python (__main__.Texts), whose code is never run'",
        "module_legacy.pt, 'a pickle, as torch.save wrote it before PyTorch 1.6, whose code is never run'",
        "checkpoint.pt, 'a pickled object of Python, such as a checkpoint, whose code is never run'",
        "code.pt, 'a pickled object of Python (posix.system), whose code is never run'",
        "code_legacy.pt, 'a pickle, as torch.save wrote it before PyTorch 1.6, whose code is never run'"
    })
    void filesOfOtherFunctions(String file, String reason) {
        ModelSettingsBuilder settings = settings()
                .modelFilename(file)
                .input(spec("x", DataType.FP32, 1))
                .output(spec("OUTPUT__0", DataType.FP32, 1));
        try (CheckedBackend test = new CheckedBackend(root.resolve("bad"))) {
            BackendException refusal = test.refusal(settings);

            assertThat(refusal)
                    .message()
                    .startsWith("failed to load model 'm': 'm/1/" + file + "': " + reason
                            + " (expected: TorchScript, as torch.jit.script(model.eval()).save(\"model.pt\")");
        }
        assertThat(marker).doesNotExist();
    }

    /** A module of TorchScript whose pickles ask for a function of Python. */
    @ParameterizedTest
    @ValueSource(strings = {"data.pkl", "constants.pkl", "traced_inputs.pkl"})
    void codeInPicklesOfAModule(String record) throws IOException {
        Path directory = Files.createDirectories(root.resolve("code_" + record));
        Path file = ScriptFiles.write(directory, "def forward(self, x: Tensor) -> Tensor:\n    return x\n");
        Map<String, byte[]> records = ScriptFiles.records(file);
        Map<String, byte[]> source = ScriptFiles.records(root.resolve("bad/code.pt"));
        byte[] code = source.entrySet().stream()
                .filter(entry -> entry.getKey().endsWith("/data.pkl"))
                .findFirst()
                .orElseThrow()
                .getValue();
        records.put("model/" + record, code);
        ScriptFiles.write(file, records);
        try (CheckedBackend test = new CheckedBackend(directory)) {
            BackendException refusal = test.refusal(
                    settings().input(spec("x", DataType.FP32, 1)).output(spec("OUTPUT__0", DataType.FP32, 1)));

            assertThat(refusal).message().startsWith("failed to load model 'm': ");
        }
        assertThat(marker).doesNotExist();
    }
}
