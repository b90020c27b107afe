package dev.nereid.distribution.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelMetadata;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import inference.ModelSequenceBatching;
import java.util.List;
import org.junit.jupiter.api.Test;

final class CurlExampleTest {
    private static final CurlExample ZEROS = new CurlExample("http://h:1", CurlExample.Values.ZEROS);

    @Test
    void sendsZerosInTheRightShape() {
        String line = line(
                ZEROS,
                model(
                        8,
                        TensorSpec.of("A", DataType.FP32, Shape.of(-1, 2)),
                        TensorSpec.of("B", DataType.BYTES, Shape.of(1)),
                        TensorSpec.of("C", DataType.BOOL, Shape.of(1)),
                        TensorSpec.of("D", DataType.UINT8, Shape.of(3))));

        assertThat(line)
                .isEqualTo("curl -s http://h:1/v2/models/m/infer -d '{\"inputs\": ["
                        + "{\"name\": \"A\", \"datatype\": \"FP32\", \"shape\": [1, 1, 2], \"data\": [0.0, 0.0]}, "
                        + "{\"name\": \"B\", \"datatype\": \"BYTES\", \"shape\": [1, 1], \"data\": [\"\"]}, "
                        + "{\"name\": \"C\", \"datatype\": \"BOOL\", \"shape\": [1, 1], \"data\": [false]}, "
                        + "{\"name\": \"D\", \"datatype\": \"UINT8\", \"shape\": [1, 3], \"data\": [0, 0, 0]}]}'");
    }

    @Test
    void sendsASequenceOfOneRequest() {
        ModelMetadata model = model(0, TensorSpec.of("A", DataType.INT8, Shape.of(1)));
        String rest = ", \"sequence_start\": true, \"sequence_end\": true}, \"inputs\": [";
        ModelConfig.Builder config = ModelConfig.newBuilder();
        assertThat(line(ZEROS, model, config.build())).doesNotContain("sequence");
        config.getSequenceBatchingBuilder().getDirectBuilder();
        assertThat(line(ZEROS, model, config.build())).contains("{\"parameters\": {\"sequence_id\": 1999999999" + rest);
        config.getSequenceBatchingBuilder()
                .addControlInputBuilder()
                .addControlBuilder()
                .setKind(ModelSequenceBatching.Control.Kind.CONTROL_SEQUENCE_CORRID)
                .setDataType(inference.DataType.TYPE_STRING);
        assertThat(line(ZEROS, model, config.build()))
                .contains("{\"parameters\": {\"sequence_id\": \"1999999999\"" + rest);
    }

    @Test
    void leavesTheBatchDimensionOutWhereThereIsNone() {
        assertThat(line(ZEROS, model(0, TensorSpec.of("A", DataType.INT8, Shape.SCALAR))))
                .contains("\"shape\": [], \"data\": [0]");
    }

    @Test
    void countsShortInputsOfIntegers() {
        String line = line(
                new CurlExample("http://h:1", CurlExample.Values.COUNTED),
                model(
                        8,
                        TensorSpec.of("A", DataType.INT32, Shape.of(4)),
                        TensorSpec.of("B", DataType.INT32, Shape.of(4)),
                        TensorSpec.of("C", DataType.INT8, Shape.of(13)),
                        TensorSpec.of("D", DataType.FP32, Shape.of(1))));

        assertThat(line)
                .contains("[10, 20, 30, 40]", "[1, 2, 3, 4]", "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", "[0.0]");
    }

    @Test
    void hasTheShellMakeLongInputs() {
        assertThat(line(
                        ZEROS,
                        model(
                                0,
                                TensorSpec.of("A", DataType.FP32, Shape.of(3, 224, 224)),
                                TensorSpec.of("B", DataType.INT8, Shape.of(1)))))
                .isEqualTo("{ printf %s '{\"inputs\": [{\"name\": \"A\", \"datatype\": \"FP32\", "
                        + "\"shape\": [3, 224, 224], \"data\": ['; yes '0.0' | head -n 150528 | paste -sd, -; "
                        + "printf %s ']}, {\"name\": \"B\", \"datatype\": \"INT8\", \"shape\": [1], \"data\": [0]}]}'; }"
                        + " | curl -s http://h:1/v2/models/m/infer -d @-");
    }

    @Test
    void quotesNamesForJsonAndForTheShell() {
        ModelMetadata model = new ModelMetadata(
                "a.b-c_1",
                List.of(1L),
                "",
                0,
                false,
                List.of(TensorSpec.of("it's \"x\\y\"\n", DataType.INT8, Shape.of(1))),
                List.of());

        assertThat(line(ZEROS, model))
                .contains("/v2/models/a.b-c_1/infer")
                .contains("\"it'\\''s \\\"x\\\\y\\\"\\u000a\"");
    }

    @Test
    void hasNoExampleForInputsBeyondTheLimitOfARequest() {
        List<Shape> shapes = List.of(
                Shape.of(4294967296L, 4294967296L, 4294967296L),
                Shape.of(4294967296L, 4294967296L),
                Shape.of(Long.MAX_VALUE),
                Shape.of(Long.MAX_VALUE, Long.MAX_VALUE),
                Shape.of(2, Long.MAX_VALUE),
                Shape.of(0, Long.MAX_VALUE),
                Shape.of((16 << 20) + 1));
        for (Shape shape : shapes) {
            for (int maxBatchSize : List.of(0, 8, Integer.MAX_VALUE)) {
                assertThat(ZEROS.line(model(maxBatchSize, TensorSpec.of("A", DataType.FP32, shape))))
                        .as("%s", shape)
                        .isEmpty();
            }
        }
        TensorSpec half = TensorSpec.of("A", DataType.INT8, Shape.of(8 << 20));
        assertThat(ZEROS.line(model(0, half, half))).isPresent();
        assertThat(ZEROS.line(model(0, half, half, half))).isEmpty();
    }

    /** The server does not decode paths, so that no request over HTTP reaches such a model. */
    @Test
    void hasNoExampleForANameThatIsNoPartOfAPath() {
        for (String name : List.of("a b", "a'b", "a%20b", "a\nb", "a?b", "a#b", "\u001b[31m", "\ud83d\ude00", "")) {
            ModelMetadata model = new ModelMetadata(
                    name,
                    List.of(1L),
                    "",
                    0,
                    false,
                    List.of(TensorSpec.of("A", DataType.INT8, Shape.of(1))),
                    List.of());

            assertThat(ZEROS.line(model)).as(name).isEmpty();
        }
    }

    @Test
    void escapesCharactersThatControlATerminal() {
        ModelMetadata model =
                model(0, TensorSpec.of("\0\u001b[31m\u007f\u0085\u009b\u202e\u2028\ud800", DataType.INT8, Shape.of(1)));

        assertThat(line(ZEROS, model)).contains("\"\\u0000\\u001b[31m\\u007f\\u0085\\u009b\\u202e\\u2028\\ud800\"");
    }

    private static String line(CurlExample example, ModelMetadata model) {
        return example.line(model).orElseThrow();
    }

    private static String line(CurlExample example, ModelMetadata model, ModelConfig config) {
        return example.line(model, config).orElseThrow();
    }

    private static ModelMetadata model(int maxBatchSize, TensorSpec... inputs) {
        return new ModelMetadata("m", List.of(1L), "", maxBatchSize, false, List.of(inputs), List.of());
    }
}
