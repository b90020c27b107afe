package dev.nereid.server.golden;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelTransactionPolicy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class GoldenConfigTest {
    private static final Pattern CONFIG_ROUTE = Pattern.compile("^GET /v2/models/([^/]+)(?:/versions/1)?/config ");

    static List<Golden.Case> configResponses() {
        return Golden.cases("http.jsonl", "body").stream()
                .filter(one -> CONFIG_ROUTE.matcher(one.request()).find())
                .filter(one -> !one.response().startsWith("{\"error\""))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("configResponses")
    void printsWhatTheReferencePrints(Golden.Case recorded) throws IOException {
        Matcher route = CONFIG_ROUTE.matcher(recorded.request());
        assertThat(route.find()).isTrue();

        String json = ModelConfigJson.write(loaded(Golden.path("models").resolve(route.group(1))));

        assertThat(json).isEqualTo(recorded.response());
    }

    @Test
    void theRecordHoldsConfigResponses() {
        assertThat(configResponses()).hasSizeGreaterThan(10);
    }

    static List<Path> models() {
        return Golden.models();
    }

    @ParameterizedTest
    @MethodSource("models")
    void acceptsEveryRecordedModel(Path model) throws IOException {
        ModelConfig config = loaded(model);

        assertThat(config.getName()).isEqualTo(model.getFileName().toString());
        assertThat(config.getInputCount()).isPositive();
        assertThat(config.getOutputCount()).isPositive();
    }

    /** Completes and validates a model's configuration as a load does. */
    private static ModelConfig loaded(Path model) throws IOException {
        String name = model.getFileName().toString();
        Path file = model.resolve("config.pbtxt");
        ModelConfig written = Files.exists(file) ? ModelConfigReader.read(file) : ModelConfig.getDefaultInstance();
        ModelConfig named =
                ConfigNormalization.normalize(ConfigCompletion.fromFiles(written, name, firstVersion(model)));
        ConfigValidation.check(named, name);
        ModelConfig found = named.getInputCount() == 0 ? ConfigCompletion.merge(named, addSub()) : named;
        ModelConfig completed = ConfigNormalization.instanceGroups(
                ConfigNormalization.normalize(found), BackendTraits.DEFAULT, List.of());
        ConfigValidation.check(completed, name);
        ConfigValidation.checkTensors(completed);
        ConfigValidation.checkInstanceGroups(completed, List.of());
        return completed.hasEnsembleScheduling() ? withoutDecoupling(completed) : completed;
    }

    /** Removes the settings that the reference adds to an ensemble, which its scheduler will add. */
    private static ModelConfig withoutDecoupling(ModelConfig ensemble) {
        return ensemble.toBuilder()
                .setModelTransactionPolicy(ModelTransactionPolicy.getDefaultInstance())
                .build();
    }

    /** Returns the completion that the ONNX backend finds in the one model that has no configuration. */
    private static ModelCompletion addSub() {
        Shape shape = Shape.of(16);
        return ModelCompletion.EMPTY
                .withProposedMaxBatchSize(4)
                .withDynamicBatching()
                .withInputs(List.of(
                        TensorSpec.of("INPUT1", DataType.INT32, shape), TensorSpec.of("INPUT0", DataType.INT32, shape)))
                .withOutputs(List.of(
                        TensorSpec.of("OUTPUT1", DataType.INT32, shape),
                        TensorSpec.of("OUTPUT0", DataType.INT32, shape)));
    }

    private static Set<String> firstVersion(Path model) throws IOException {
        try (Stream<Path> versions = Files.list(model);
                Stream<Path> entries = Files.list(
                        versions.filter(Files::isDirectory).sorted().findFirst().orElseThrow())) {
            Set<String> names = new HashSet<>();
            entries.forEach(entry -> names.add(entry.getFileName() + (Files.isDirectory(entry) ? "/" : "")));
            return names;
        }
    }
}
