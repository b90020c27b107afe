package dev.nereid.distribution.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelStatus;
import dev.nereid.distribution.process.Endpoint;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/** The report of a start at which models, or whole repositories, have failed. */
final class StartReportTest {
    private static final ModelStatus GOOD = new ModelStatus("good", OptionalLong.of(1), ModelStatus.State.READY, "");
    private static final ModelStatus BROKEN = new ModelStatus(
            "broken", OptionalLong.of(2), ModelStatus.State.UNAVAILABLE, "Internal: the model's file is broken");
    private static final ModelStatus REPOSITORY = new ModelStatus(
            "s3://bucket",
            OptionalLong.empty(),
            ModelStatus.State.UNAVAILABLE,
            "model repository 's3://bucket': cannot be listed: status 403, AccessDenied");

    private final FakeInferenceServer server = new FakeInferenceServer(new LeakCheckingMemory());

    private StartReport report(List<ModelStatus> index, ModelStatus... failed) {
        server.setIndex(index);
        server.add(FakeModel.identity("good", DataType.FP32, 8, 1));
        Endpoint http = new Endpoint("127.0.0.1", 8000);
        return new StartReport(
                List.of(new BackendStatus("identity", "identity", BackendStatus.State.AVAILABLE, "")),
                List.of(),
                server.models(),
                List.of(failed),
                new MemoryReport(1000, TensorMemoryBound.of(2000), 0),
                new Endpoints(Optional.of(http), Optional.empty(), Optional.empty()));
    }

    private static List<String> lines(StartReport report) {
        return report.text(CurlExample.Values.ZEROS)
                .lines()
                .map(line -> line.replaceAll(" +", " ").strip())
                .toList();
    }

    @Test
    void namesNothingWhereAllIsWell() {
        StartReport report = report(List.of(GOOD));

        assertThat(lines(report)).contains("good 1 READY");
        assertThat(report.failures()).isEmpty();
    }

    @Test
    void listsAFailedModelBesideTheOthers() {
        StartReport report = report(List.of(BROKEN, GOOD), BROKEN);

        assertThat(lines(report))
                .containsSubsequence(
                        "MODEL VERSION STATUS",
                        "broken 2 UNAVAILABLE: Internal: the model's file is broken",
                        "good 1 READY")
                .containsOnlyOnce("broken 2 UNAVAILABLE: Internal: the model's file is broken")
                .filteredOn(line -> line.startsWith("curl "))
                .as("an example for what serves alone")
                .singleElement()
                .asString()
                .contains("/v2/models/good/infer");
        assertThat(report.failures())
                .contains("models: broken (expected: every model loads; reasons in the table above)");
    }

    /** An example with an empty text would fail at a model that expects pictures. */
    @Test
    void hasNoExampleForModelsOfBytes() {
        server.add(FakeModel.identity("pictures", DataType.BYTES, 8, 1));
        ModelStatus pictures = new ModelStatus("pictures", OptionalLong.of(1), ModelStatus.State.READY, "");

        assertThat(lines(report(List.of(GOOD, pictures))))
                .filteredOn(line -> line.startsWith("curl "))
                .singleElement()
                .asString()
                .contains("/v2/models/good/infer");
    }

    @Test
    void listsARepositoryThatFailedWithItsReason() {
        StartReport report = report(List.of(GOOD), REPOSITORY);

        assertThat(lines(report)).contains("good 1 READY", "s3://bucket - UNAVAILABLE: " + REPOSITORY.reason());
        assertThat(report.failures())
                .as("the caller names the repository with its reason")
                .isEmpty();
    }

    /** The line of the models alone would hide the repository. */
    @Test
    void listsARepositoryAndAModelThatFailed() {
        StartReport report = report(List.of(BROKEN, GOOD), BROKEN, REPOSITORY);

        assertThat(lines(report))
                .containsSubsequence(
                        "broken 2 UNAVAILABLE: Internal: the model's file is broken",
                        "good 1 READY",
                        "s3://bucket - UNAVAILABLE: " + REPOSITORY.reason());
        assertThat(report.failures()).isEmpty();
    }

    @Test
    void namesEachModelOnce() {
        ModelStatus other = new ModelStatus("broken", OptionalLong.of(3), ModelStatus.State.UNAVAILABLE, "too");
        StartReport report = report(List.of(BROKEN, other, GOOD), BROKEN, other);

        assertThat(lines(report)).contains("broken 3 UNAVAILABLE: too");
        assertThat(report.failures())
                .contains("models: broken (expected: every model loads; reasons in the table above)");
    }
}
