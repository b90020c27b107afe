package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.function.AsyncTensorFunction;
import dev.nereid.spi.function.StreamingFunction;
import dev.nereid.spi.function.TensorFunction;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.FakeSender;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.contract.ContractExample;
import dev.nereid.testkit.contract.ContractModel;
import dev.nereid.testkit.contract.LocalModel;
import dev.nereid.testkit.contract.LocalResponse;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs the one-class functions of {@code docs/backend-authors.md}. */
final class DocumentedFunctionsTest {
    @TempDir
    private Path directory;

    private URLClassLoader loader;

    @BeforeEach
    void setUp() throws IOException {
        Path jar = directory.resolve("functions.jar");
        TestPlugins.documentedFunctions(jar);
        loader = new URLClassLoader(new URL[] {jar.toUri().toURL()}, getClass().getClassLoader());
    }

    @AfterEach
    void tearDown() throws IOException {
        loader.close();
    }

    @Test
    void doublesNumbers() throws Exception {
        try (LocalModel twice = load("Twice")) {
            assertThat(twice.infer(ContractExample.request().input("INPUT", Shape.of(1, 2), 1, 2.5f))
                            .output("OUTPUT")
                            .floats())
                    .containsExactly(2, 5);
        }
    }

    @Test
    void namesTheLargestScores() throws Exception {
        ContractExample request = ContractExample.request().input("SCORES", Shape.of(3), 0.2f, 0.7f, 0.1f);
        try (LocalModel labels = load("Labels")) {
            assertThat(labels.infer(request).output("LABELS").strings()).containsExactly("class 1");

            LocalResponse two = labels.infer(request.input("TOP", Tensor.ofInts(Shape.of(1), 2)));
            assertThat(two.output("LABELS").strings()).containsExactly("class 1", "class 0");
        }
    }

    @Test
    void findsWordsInTheVocabularyOfItsModel() throws Exception {
        Files.writeString(directory.resolve("vocab.txt"), "the\ncat\n");
        ContractExample request =
                ContractExample.request().input("TEXT", Tensor.ofStrings(Shape.of(1), List.of("the black cat")));
        try (LocalModel vocabulary = load("Vocabulary")) {
            assertThat(vocabulary.infer(request).output("IDS").longs()).containsExactly(0, -1, 1);
        }
        Files.delete(directory.resolve("vocab.txt"));
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> load("Vocabulary"))
                .withMessageStartingWith("vocab.txt: cannot be read: ");
    }

    @Test
    void countsByAStream() throws Exception {
        StreamingFunction count = (StreamingFunction) function("Count");
        ModelSettings settings =
                complete(count.name(), count.completion()).decoupled(true).build();
        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                FakeSender sender = new FakeSender(memory);
                FakeBatch batch = new FakeBatch(
                        settings,
                        memory,
                        new FakeRequest(1, List.of("I"))
                                .with("N", Tensor.ofInts(Shape.of(1), 3))
                                .with(sender))) {
            count.create(new FakeBackendContext(Map.of(), directory, 1))
                    .load(new FakeModelContext(settings, directory))
                    .newInstance(new FakeInstanceContext("m_0"))
                    .execute(batch);

            assertThat(sender.responses())
                    .extracting(response -> response.get("I").ints()[0])
                    .containsExactly(0, 1, 2);
            assertThat(sender.hasEnded()).isTrue();
        }
    }

    @Test
    void namesTheInputThatIsMissing() throws Exception {
        try (LocalModel twice = load("Twice")) {
            assertThat(twice.infer(ContractExample.request().input("IN", Shape.of(1, 2), 1, 2.5f))
                            .failure())
                    .get()
                    .returns("input 'INPUT': not in the request (it has: [IN])", BackendException::getMessage)
                    .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
        }
    }

    @Test
    void scoresTextsByAnotherModel() throws Exception {
        AsyncTensorFunction function = (AsyncTensorFunction) function("TextScores");
        ContractModel model = ContractModel.of(
                        complete("m", function.completion()).build())
                .withParameter("scorer", "scores")
                .withModels(Map.of("scores", DocumentedFunctionsTest::halves));
        try (LocalModel scores = LocalModel.load(function, model)) {
            LocalResponse response =
                    scores.infer(ContractExample.request().input("TEXT", Tensor.ofStrings(Shape.of(1), List.of("hi"))));

            assertThat(response.output("SCORES").floats()).containsExactly('h' / 2f, 'i' / 2f);
        }
    }

    private static Map<String, Tensor> halves(Map<String, Tensor> inputs) {
        long[] ids = inputs.get("IDS").longs();
        return Map.of("SCORES", Tensor.ofFloats(Shape.of(1, ids.length), ids[0] / 2f, ids[1] / 2f));
    }

    /** Loads a model with nothing but what the function declares. */
    private LocalModel load(String type) throws Exception {
        TensorFunction function = (TensorFunction) function(type);
        return LocalModel.load(
                function,
                ContractModel.of(complete("m", function.completion()).build()).in(directory, directory));
    }

    private BackendProvider function(String type) throws Exception {
        return loader.loadClass(type)
                .asSubclass(BackendProvider.class)
                .getDeclaredConstructor()
                .newInstance();
    }

    private static ModelSettingsBuilder complete(String name, ModelCompletion declared) {
        ModelSettingsBuilder settings = ModelSettings.builder(name, 1)
                .maxBatchSize(declared.proposedMaxBatchSize().orElse(0));
        declared.inputs().forEach(settings::input);
        declared.outputs().forEach(settings::output);
        return settings;
    }
}
