package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.TestModels;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OnnxModelTest {
    @TempDir
    Path directory;

    @Test
    void reportsThreadsAndInstances() {
        FakeModelContext context = TestBackend.model(addSub("add_sub.onnx").build(), 2);

        load(context, Map.of());

        assertThat(context.logger().lines())
                .contains("INFO loaded version 1: intra-op threads 3, inter-op threads 3, instances 2, inputs 2,"
                        + " outputs 2");
    }

    /** A session of a GPU would be opened from files that may have changed since. */
    @Test
    void suitsNoDeviceThatItWasNotLoadedFor() {
        Device gpu = new Device(Device.Kind.GPU, 0);
        try (TestBackend backend = new TestBackend();
                Model model = backend.backend.load(
                        TestBackend.model(addSub("add_sub.onnx").build(), 2))) {
            assertThat(model.suits(List.of(Device.CPU, Device.CPU))).isTrue();
            assertThat(model.suits(List.of(Device.CPU, gpu))).isFalse();
        }
    }

    @Test
    void reportsThatAllModelsShareTheirThreads() {
        FakeModelContext context = TestBackend.model(addSub("add_sub.onnx").build(), 2);

        load(context, Map.of("enable-global-threadpool", "1"));

        assertThat(context.logger().lines())
                .contains("INFO loaded version 1: threads shared by all models, instances 2, inputs 2, outputs 2");
    }

    @Test
    void sharesThreadsAmongTheModelsThatAreLoadedBeyondTheBound() {
        FakeModelContext context = TestBackend.model(addSub("add_sub.onnx").build(), 1);
        try (TestBackend backend = new TestBackend()) {
            Deque<Model> models = new ArrayDeque<>();
            for (int i = 0; i < 65; i++) { // with 3 threads each; 192 are allowed
                models.add(backend.backend.load(context));
            }
            String own =
                    "INFO loaded version 1: intra-op threads 4, inter-op threads 4, instances 1, inputs 2, outputs 2";
            assertThat(loads(context))
                    .hasSize(65)
                    .last()
                    .isEqualTo(
                            "INFO loaded version 1: threads shared with other models, instances 1, inputs 2, outputs 2");
            assertThat(loads(context).subList(0, 64)).containsOnly(own);

            FakeModelContext sized =
                    TestBackend.model(addSub("add_sub.onnx").build(), 1).withParameter("intra_op_thread_count", "3");
            models.add(backend.backend.load(sized));
            assertThat(loads(sized)).containsExactly(own.replace("intra-op threads 4", "intra-op threads 3"));

            models.removeFirst().close();
            models.add(backend.backend.load(context));

            assertThat(loads(context)).last().isEqualTo(own);
            models.forEach(Model::close);
        }
    }

    private static List<String> loads(FakeModelContext context) {
        return context.logger().lines().stream()
                .filter(line -> line.startsWith("INFO loaded version"))
                .toList();
    }

    @Test
    void loadsADirectoryWithTheModelAndItsData() {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .modelFilename("external_data")
                .input(fp32("input", 64))
                .output(fp32("output", 64))
                .build();

        load(TestBackend.model(settings, 1), Map.of());
    }

    @Test
    void findsModelOnnxInTheVersionDirectory() throws Exception {
        Path version = Files.createDirectory(directory.resolve("1"));
        Files.copy(TestModels.model("add_sub.onnx"), version.resolve("model.onnx"));

        load(new FakeModelContext(addSub("").build(), directory), Map.of());
    }

    @Test
    void reportsTheMissingFile() throws IOException {
        Files.createDirectory(directory.resolve("1"));

        assertRefused(
                new FakeModelContext(addSub("").build(), directory),
                ErrorCode.INTERNAL,
                "failed to stat file m/1/model.onnx: unable to find 'm/1/model.onnx' for model instance 'm'");
    }

    @Test
    void opensNoPipe() throws Exception {
        Path version = Files.createDirectory(directory.resolve("1"));
        new ProcessBuilder("mkfifo", version.resolve("model.onnx").toString())
                .start()
                .waitFor();

        assertRefused(
                new FakeModelContext(addSub("").build(), directory),
                ErrorCode.INVALID_ARGUMENT,
                "'m/1/model.onnx' for model instance 'm' is neither a regular file nor a directory (expected: one of"
                        + " them)");
    }

    @Test
    void reportsThatADirectoryHasNoModel() throws IOException {
        Files.createDirectories(directory.resolve("1").resolve("model.onnx"));

        assertRefused(
                new FakeModelContext(addSub("").build(), directory),
                ErrorCode.UNAVAILABLE,
                "unable to find 'm/1/model.onnx/model.onnx' for model instance 'm' (expected: model.onnx, or exactly"
                        + " one file that ends with .onnx)");
    }

    @Test
    void readsNothingOutsideTheVersionsDirectory() throws IOException {
        Files.createDirectory(directory.resolve("1"));
        Files.copy(TestModels.model("add_sub.onnx"), directory.resolve("model.onnx"));

        assertRefused(
                new FakeModelContext(addSub("../model.onnx").build(), directory),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', default_model_filename: '../model.onnx' (expected: a path within the model's"
                        + " directory)");
    }

    @Test
    void passesOnWhyOnnxRuntimeRefusesAModel() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() ->
                        load(TestBackend.model(addSub("unknown_operator.onnx").build(), 1), Map.of()))
                .withMessageMatching("onnx runtime error \\d+: .*NoSuchOperator.*")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INTERNAL);
    }

    @Test
    void saysWhatToInstallForAGraphicsProcessor() {
        assertRefused(
                TestBackend.model(addSub("add_sub.onnx").build(), new Device(Device.Kind.GPU, 0)),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', instance on gpu0: the ONNX Runtime in this plugin has no CUDA provider (has:"
                        + " CPUExecutionProvider): install the plugin directory onnxruntime-gpu in place of onnx, or use"
                        + " KIND_CPU");
    }

    @Test
    void refusesAGraphicsProcessorAlsoBesideTheCpu() {
        assertRefused(
                TestBackend.model(addSub("add_sub.onnx").build(), Device.CPU, new Device(Device.Kind.GPU, 1)),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', instance on gpu1: the ONNX Runtime in this plugin has no CUDA provider (has:"
                        + " CPUExecutionProvider): install the plugin directory onnxruntime-gpu in place of onnx, or use"
                        + " KIND_CPU");
    }

    @Test
    void refusesAnInstanceThatIsAddedOnAGraphicsProcessorAndServesOn() {
        try (TestBackend backend = new TestBackend(Map.of());
                Model model = backend.backend.load(
                        TestBackend.model(addSub("add_sub.onnx").build(), 1))) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() ->
                            model.newInstance(new FakeInstanceContext("1", new Device(Device.Kind.GPU, 2), List.of())))
                    .withMessageStartingWith("unable to load model 'm', instance on gpu2: the ONNX Runtime");

            model.newInstance(new FakeInstanceContext("2")).close();
        }
    }

    private static void load(FakeModelContext context, Map<String, String> settings) {
        try (TestBackend backend = new TestBackend(settings)) {
            backend.backend.load(context).close();
        }
    }

    private static void assertRefused(FakeModelContext context, ErrorCode code, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> load(context, Map.of()))
                .withMessage(message)
                .extracting(BackendException::code)
                .isEqualTo(code);
    }

    private static ModelSettingsBuilder addSub(String file) {
        return ModelSettings.builder("m", 1)
                .modelFilename(file)
                .input(fp32("a", 4))
                .input(fp32("b", 4))
                .output(fp32("sum", 4))
                .output(fp32("difference", 4));
    }

    private static TensorSpec fp32(String name, long size) {
        return TensorSpec.of(name, DataType.FP32, Shape.of(size));
    }
}
