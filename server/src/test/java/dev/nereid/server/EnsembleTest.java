package dev.nereid.server;

import static dev.nereid.server.EnsembleFixture.step;
import static dev.nereid.server.EnsembleFixture.tensors;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelRef;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.server.EnsembleFixture.Query;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests ensembles whose steps have one response each, from the configuration to the response. */
@Timeout(120)
final class EnsembleTest {
    @TempDir
    private Path directory;

    private EnsembleFixture fixture;

    @BeforeEach
    void setUp() throws Exception {
        fixture = new EnsembleFixture(directory);
        fixture.step("one", parameter("add", "1"))
                .step("ten", parameter("add", "10"))
                .model(
                        "sum",
                        "max_batch_size: 8\n" + tensors("input", "-1", "A", "B") + tensors("output", "-1", "OUT"));
    }

    @Test
    void executesOneStepAfterAnother() throws Exception {
        fixture.ensemble("both", step("one", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "both", 1, 2).send().output("OUT")).containsExactly(12f, 13f);
            assertThat(Query.of(server, "one", 1).send().output("OUT")).containsExactly(2f);
        }
    }

    /** In whatever order the steps are configured. */
    @Test
    void joinsBranches() throws Exception {
        fixture.ensemble(
                "join",
                step("sum", "A=left,B=right", "OUT=OUT"),
                step("one", "IN=IN", "OUT=left"),
                step("ten", "IN=IN", "OUT=right"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "join", 1, 2).send().output("OUT")).containsExactly(13f, 15f);
        }
    }

    @Test
    void executesOnlyWhatRequestedOutputsNeed() throws Exception {
        fixture.ensembleOf(
                "two",
                "max_batch_size: 8\n" + tensors("input", "-1", "IN") + tensors("output", "-1", "LEFT", "RIGHT"),
                step("one", "IN=IN", "OUT=LEFT"),
                step("ten", "IN=IN", "OUT=RIGHT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "two", 1).withOutputs("RIGHT").send().responses())
                    .singleElement()
                    .satisfies(response -> assertThat(response.outputs()).isEqualTo(Map.of("RIGHT", List.of(11f))));
            assertThat(executions(server, "one")).isZero();

            assertThat(Query.of(server, "two", 1).send().responses())
                    .singleElement()
                    .satisfies(response -> assertThat(response.outputs())
                            .isEqualTo(Map.of("LEFT", List.of(2f), "RIGHT", List.of(11f))));
            assertThat(executions(server, "one")).isOne();
        }
    }

    private static long executions(NereidServer server, String model) {
        return statistics(server, model).executions().executionCount();
    }

    private static ModelStatistics statistics(NereidServer server, String model) {
        return server.models().statistics(ModelRef.latest(model)).getFirst();
    }

    /** A model with batches and one without see the same tensor with and without its first dimension. */
    @Test
    void connectsModelsWithAndWithoutBatches() throws Exception {
        fixture.model(
                        "flat",
                        "max_batch_size: 0\n" + tensors("input", "2", "IN") + tensors("output", "2", "OUT")
                                + parameter("add", "100"))
                .ensembleOf(
                        "mixed",
                        "max_batch_size: 1\n" + tensors("input", "2", "IN") + tensors("output", "2", "OUT"),
                        step("one", "IN=IN", "OUT=a"),
                        step("flat", "IN=a", "OUT=b"),
                        step("ten", "IN=b", "OUT=OUT"))
                .ensembleOf(
                        "plain",
                        "max_batch_size: 0\n" + tensors("input", "2", "IN") + tensors("output", "2", "OUT"),
                        step("one", "IN=IN", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            var response = Query.of(server, "mixed", 1, 2).send().responses().getFirst();
            assertThat(response.outputs()).isEqualTo(Map.of("OUT", List.of(112f, 113f)));
            assertThat(response.shapes()).isEqualTo(Map.of("OUT", List.of(1L, 2L)));

            var plain = Query.of(server, "plain", 1, 2)
                    .withoutBatch()
                    .send()
                    .responses()
                    .getFirst();
            assertThat(plain.outputs()).isEqualTo(Map.of("OUT", List.of(2f, 3f)));
            assertThat(plain.shapes()).isEqualTo(Map.of("OUT", List.of(2L)));
        }
    }

    private void optional() {
        fixture.model(
                "some",
                "max_batch_size: 8\n" + tensors("input", "-1", "A")
                        + "input { name: \"B\" data_type: TYPE_FP32 dims: [ -1 ] optional: true }\n"
                        + tensors("output", "-1", "OUT"));
    }

    @Test
    void leavesOutOptionalInputs() throws Exception {
        optional();
        fixture.ensembleOf(
                "maybe",
                "max_batch_size: 8\n" + tensors("input", "-1", "IN")
                        + "input { name: \"MORE\" data_type: TYPE_FP32 dims: [ -1 ] optional: true }\n"
                        + tensors("output", "-1", "OUT"),
                step("some", "A=IN,B=MORE", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "maybe", 1).send().output("OUT")).containsExactly(1f);
            assertThat(new Query(server, "maybe", Map.of("IN", new float[] {1}, "MORE", new float[] {5}))
                            .send()
                            .output("OUT"))
                    .containsExactly(6f);
        }
    }

    /** An output that a step did not write is no input of the next, which has to do without it. */
    @Test
    void passesOnThatAnOutputIsMissing() throws Exception {
        optional();
        fixture.model(
                        "forgetful",
                        "max_batch_size: 8\n" + tensors("input", "-1", "IN") + tensors("output", "-1", "OUT", "LOST")
                                + parameter("missing", "LOST"))
                .ensemble("copes", step("forgetful", "IN=IN,", "OUT=a,LOST=b"), step("some", "A=a,B=b", "OUT=OUT"))
                .ensemble("fails", step("forgetful", "IN=IN,", "OUT=a,LOST=b"), step("sum", "A=a,B=b", "OUT=OUT"))
                .ensembleOf(
                        "shows",
                        "max_batch_size: 8\n" + tensors("input", "-1", "IN") + tensors("output", "-1", "OUT", "LOST"),
                        step("forgetful", "IN=IN", "OUT=OUT,LOST=LOST"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "copes", 1).send().output("OUT")).containsExactly(1f);
            assertThat(Query.of(server, "fails", 1).withId("x").send().error()).satisfies(error -> {
                assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                assertThat(error.publicMessage())
                        .startsWith("in ensemble 'fails', [request id: x] expected 2 inputs but got 1 inputs for"
                                + " model 'sum'");
            });
            assertThat(Query.of(server, "shows", 1).send().responses())
                    .singleElement()
                    .satisfies(response -> assertThat(response.outputs()).isEqualTo(Map.of("OUT", List.of(1f))));
        }
    }

    /** They are there whether the request is part of a sequence or not, as in the reference. */
    @Test
    void tellsThePositionInASequence() throws Exception {
        fixture.ensemble("both", step("one", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"))
                .step("marking", parameter("sequence_id", "7"))
                .ensemble("marked", step("marking", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "both", 1).send().responses().getFirst().parameters())
                    .isEqualTo(Map.of(
                            "sequence_id", new ParameterValue.Int(0),
                            "sequence_start", new ParameterValue.Bool(false),
                            "sequence_end", new ParameterValue.Bool(false)));
            assertThat(Query.of(server, "marked", 1)
                            .send()
                            .responses()
                            .getFirst()
                            .parameters())
                    .isEqualTo(Map.of(
                            "sequence_id", new ParameterValue.Int(7),
                            "sequence_start", new ParameterValue.Bool(true),
                            "sequence_end", new ParameterValue.Bool(false)));
        }
    }

    /** The compute times are the sums of those of the steps; the real version is counted. */
    @Test
    void countsItsRequests() throws Exception {
        fixture.ensemble("both", step("one", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            for (int i = 0; i < 3; i++) {
                Query.of(server, "both", 1).send().responses();
            }
            Query.of(server, "both", 1).withOutputs("nope").send().error();

            ModelStatistics both = statistics(server, "both");
            assertThat(both.model().version()).isOne();
            assertThat(both.executions().inferenceCount()).isEqualTo(3);
            assertThat(both.executions().executionCount()).isEqualTo(3);
            assertThat(both.executions().batches())
                    .extracting(BatchStatistics::batchSize)
                    .containsExactly(1L);
            assertThat(both.inferences().success().count()).isEqualTo(3);
            long steps = statistics(server, "one")
                            .inferences()
                            .compute()
                            .infer()
                            .nanos()
                    + statistics(server, "ten").inferences().compute().infer().nanos();
            assertThat(both.inferences().compute().infer().nanos()).isEqualTo(steps);
            assertThat(both.inferences().compute().infer().count()).isEqualTo(3);
            assertThat(server.models().metadata(ModelRef.latest("both")).platform())
                    .isEqualTo("ensemble");
            assertThat(server.isReady()).isTrue();
        }
    }

    /** The reference counts the refusal of a step twice. */
    @Test
    void countsAFailureOnce() throws Exception {
        fixture.step("stateful", "sequence_batching { }\n")
                .step("failing", parameter("fail", "no"))
                .ensemble("refused", step("one", "IN=IN", "OUT=mid"), step("stateful", "IN=mid", "OUT=OUT"))
                .ensemble("failed", step("one", "IN=IN", "OUT=mid"), step("failing", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            for (String ensemble : List.of("refused", "failed")) {
                Query.of(server, ensemble, 1).withId("no").send().error();

                ModelStatistics counted = statistics(server, ensemble);
                assertThat(counted.inferences().fail().count()).as(ensemble).isOne();
                assertThat(counted.metrics().failures()).as(ensemble).containsEntry(FailureReason.OTHER, 1L);
                assertThat(counted.metrics().failures().values().stream()
                                .mapToLong(Long::longValue)
                                .sum())
                        .as(ensemble)
                        .isOne();
            }
            assertThat(statistics(server, "stateful").inferences().fail().count())
                    .isZero();
            assertThat(statistics(server, "failing").inferences().fail().count())
                    .isOne();
        }
    }

    @Test
    void executesEnsemblesAsSteps() throws Exception {
        fixture.ensemble("inner", step("one", "IN=IN", "OUT=mid"), step("ten", "IN=mid", "OUT=OUT"))
                .ensemble("outer", step("inner", "IN=IN", "OUT=mid"), step("inner", "IN=mid", "OUT=OUT"));
        try (NereidServer server = NereidServer.start(fixture.options())) {
            assertThat(Query.of(server, "outer", 1).send().output("OUT")).containsExactly(23f);
            assertThat(statistics(server, "inner").executions().executionCount())
                    .isEqualTo(2);
        }
    }
}
