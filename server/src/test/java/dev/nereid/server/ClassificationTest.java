package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classification of outputs, as an embedding program requests it. */
final class ClassificationTest {
    private static final String TENSORS = """
            max_batch_size: 8
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" }
            """;

    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void respondsWithTheLargestElementsOfEachItemAndTheirLabels() throws Exception {
        models.model("m", "backend: \"recording\"\n" + TENSORS);
        Files.writeString(models.root().resolve("m/labels.txt"), "cat\ndog\r\n\n");

        try (NereidServer server = NereidServer.start(options())) {
            NamedTensor output = classify(server, 3, 4, 3, 2, 1, 0.1f, 0.1f, 0.3f, Float.NaN);

            assertThat(output.tensor().shape()).isEqualTo(Shape.of(2, 3));
            assertThat(output.tensor().type()).isEqualTo(DataType.BYTES);
            assertThat(output.tensor().strings())
                    .containsExactly(
                            "4.000000:0:cat",
                            "3.000000:1:dog",
                            "2.000000:2",
                            "0.300000:2",
                            "0.100000:0:cat",
                            "0.100000:1:dog");
            assertThat(classify(server, Long.MAX_VALUE, 1, 2, 3, 4).tensor().shape())
                    .isEqualTo(Shape.of(1, 4));
            assertThat(server.memory().bytesInUse()).isZero();
        }
    }

    /** An output of an ensemble without a file of its own has the labels of the step that makes it. */
    @Test
    void takesTheLabelsOfAStep() throws Exception {
        models.model("step", "backend: \"recording\"\n" + TENSORS);
        Files.writeString(models.root().resolve("step/labels.txt"), "cat\ndog\n");
        models.model(
                "m",
                "platform: \"ensemble\"\n" + TENSORS.replace("label_filename: \"labels.txt\"", "")
                        + EnsembleFixture.scheduling(
                                EnsembleFixture.step("step", "INPUT0=INPUT0", "OUTPUT0=mid"),
                                EnsembleFixture.step("step", "INPUT0=mid", "OUTPUT0=OUTPUT0")));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(classify(server, 2, 4, 3, 2, 1).tensor().strings())
                    .containsExactly("4.000000:0:cat", "3.000000:1:dog");
        }
    }

    @Test
    void doesNotLoadAModelWhoseLabelsAreMissing() {
        models.model("m", "backend: \"recording\"\n" + TENSORS);

        assertThatThrownBy(() -> NereidServer.start(options()))
                .hasMessage(
                        "failed to load all models:\n"
                                + "  m version 1: Internal: failed to open text file for read labels.txt: No such file or directory");
    }

    @Test
    void doesNotReadLabelsOutsideOfTheModelsDirectory() throws Exception {
        models.model("m", "backend: \"recording\"\n" + TENSORS);
        Files.createSymbolicLink(
                models.root().resolve("m/labels.txt"), Files.writeString(directory.resolve("secret"), "one\n"));

        assertThatThrownBy(() -> NereidServer.start(options()))
                .hasMessageContaining("label file path 'labels.txt' for output 'OUTPUT0' in model 'm' is outside model"
                        + " directory");
    }

    @Test
    void refusesClassesOfOtherTypesBeforeTheModelRuns() throws Exception {
        models.model(
                "m",
                "backend: \"recording\"\nmax_batch_size: 8\n" + TestModels.TENSORS.replace("TYPE_FP32", "TYPE_BOOL"));

        try (NereidServer server = NereidServer.start(options())) {
            InputTensor input = InputTensor.of(
                    "INPUT0",
                    Tensor.of(DataType.BOOL, Shape.of(1, 4), Arena.ofAuto().allocate(4)));

            assertThatThrownBy(() -> classify(server, 1, input))
                    .cause()
                    .isInstanceOfSatisfying(InferenceException.class, error -> {
                        assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(error)
                                .hasMessage("class result not available for output due to unsupported type 'BOOL'");
                    });
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString());
    }

    private static NamedTensor classify(NereidServer server, long classes, float... values) throws Exception {
        return classify(
                server,
                classes,
                InputTensor.of(
                        "INPUT0",
                        Tensor.of(
                                DataType.FP32,
                                Shape.of(values.length / 4, 4),
                                Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, values))));
    }

    /** Returns a copy of the output, outside of the server's memory. */
    private static NamedTensor classify(NereidServer server, long classes, InputTensor input) throws Exception {
        CompletableFuture<NamedTensor> result = new CompletableFuture<>();
        InferRequest request = new InferRequest(
                ModelRef.latest("m"),
                "",
                List.of(input),
                List.of(RequestedOutput.classified("OUTPUT0", classes)),
                Map.of(),
                RequestOptions.DEFAULT,
                () -> {});
        server.infer(request, new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                NamedTensor output = response.outputs().getFirst();
                Tensor copy = Tensor.of(
                        output.tensor().type(),
                        output.tensor().shape(),
                        Arena.ofAuto()
                                .allocate(output.tensor().byteSize())
                                .copyFrom(output.tensor().data()));
                response.close();
                result.complete(new NamedTensor(output.name(), copy));
            }

            @Override
            public void onCompleted() {
                result.completeExceptionally(new AssertionError("no response"));
            }

            @Override
            public void onError(InferenceException error) {
                result.completeExceptionally(error);
            }
        });
        return result.get(30, TimeUnit.SECONDS);
    }
}
