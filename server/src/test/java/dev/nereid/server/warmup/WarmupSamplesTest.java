package dev.nereid.server.warmup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.server.lifecycle.ModelSettingsReader;
import dev.nereid.server.lifecycle.SequencePlanReader;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.ModelConfig;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the samples that the warm-up of a configuration yields. */
final class WarmupSamplesTest {
    @TempDir
    private Path directory;

    private Map<String, Shape> padded = Map.of();

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory(1 << 20);

    @Test
    void skipsASampleOfNothing() {
        try (WarmupSamples read = read(sample("a", "batch_size: 0", "dims: [ -1 ]"))) {
            assertThat(read.samples()).isEmpty();
        }
    }

    @Test
    void fillsThePaddingOfInputs() {
        padded = Map.of("IN", Shape.of(4));
        for (String content : List.of("zero_data: true", "random_data: true")) {
            try (WarmupSamples read = read(sample("a", "batch_size: 1", "dims: [ 3 ] " + content))) {
                Tensor tensor = read.samples()
                        .getFirst()
                        .batch()
                        .get()
                        .getFirst()
                        .inputs()
                        .getFirst()
                        .tensor();
                assertThat(tensor.shape()).isEqualTo(Shape.of(1, 4));
            }
        }
    }

    @Test
    void createsSingleRequestsOfOneBatch() {
        try (WarmupSamples read = read(sample("a", "batch_size: 3 count: 5", "dims: [ 2 ] zero_data: true"))) {
            Warmup.Sample sample = read.samples().getFirst();
            assertThat(sample.name()).isEqualTo("a");
            assertThat(sample.executions()).isEqualTo(5);
            assertThat(sample.batch().get()).hasSize(3).allSatisfy(request -> {
                assertThat(request.batchSize()).isEqualTo(1);
                assertThat(request.model()).isEqualTo("m");
                assertThat(request.version()).isEqualTo(3);
                assertThat(request.outputs().names()).containsExactly("OUT");
                assertThat(request.inputs().getFirst().tensor().shape()).isEqualTo(Shape.of(1, 2));
            });
        }
    }

    @Test
    void runsOnceWithoutACount() {
        try (WarmupSamples read = read(sample("a", "batch_size: 1", "dims: [ 2 ] zero_data: true"))) {
            assertThat(read.samples()).extracting(Warmup.Sample::executions).containsExactly(1);
        }
    }

    @Test
    void refusesACountThatWouldNotEnd() {
        assertThatThrownBy(() -> read(sample("a", "batch_size: 1 count: 4000000000", "dims: [ 2 ] zero_data: true")))
                .hasMessage("failed to run warmup sample 'a': count 4000000000 for 'm', max allowed is 100000; ");
        try (WarmupSamples read = read(sample("a", "batch_size: 1 count: 100000", "dims: [ 2 ] zero_data: true"))) {
            assertThat(read.samples()).extracting(Warmup.Sample::executions).containsExactly(100_000);
        }
    }

    @Test
    void writesZeros() {
        try (WarmupSamples read = read(sample("a", "batch_size: 1", "dims: [ 3 ] zero_data: false"))) {
            assertThat(input(read).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
                    .containsExactly(0, 0, 0);
        }
        try (WarmupSamples read = read(strings("dims: [ 3 ] zero_data: true"))) {
            assertThat(input(read).strings()).containsExactly("", "", "");
        }
    }

    @Test
    void writesRandomNumbersAndEmptyStrings() {
        try (WarmupSamples read = read(sample("a", "batch_size: 1", "dims: [ 100 ] random_data: true"))) {
            float[] values = input(read).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
            assertThat(values).hasSize(100).doesNotHaveDuplicates();
            for (float value : values) {
                assertThat(value).isBetween(0f, 1f);
            }
        }
        try (WarmupSamples read = read(strings("dims: [ 2 ] random_data: true"))) {
            assertThat(input(read).strings()).containsExactly("", "");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64"
    })
    void writesRandomElementsOfEveryType(DataType type) {
        String config = """
                input { name: "IN" data_type: TYPE_%s dims: [ -1 ] }
                model_warmup { name: "a" batch_size: 1 inputs {
                  key: "IN" value { data_type: TYPE_%s dims: [ 64 ] random_data: true } } }
                """.formatted(type, type);
        try (WarmupSamples read = read(config)) {
            Tensor tensor = input(read);
            assertThat(tensor.type()).isEqualTo(type);
            byte[] bytes = tensor.data().toArray(ValueLayout.JAVA_BYTE);
            assertThat(bytes).hasSize(64 * type.byteSize()).isNotEqualTo(new byte[bytes.length]);
            if (type == DataType.BOOL) {
                assertThat(bytes).containsOnly(0, 1);
            }
            if (type == DataType.FP16) {
                short first = tensor.data().get(ValueLayout.JAVA_SHORT_UNALIGNED, 0);
                assertThat(Float.float16ToFloat(first)).isBetween(0f, 1f);
            }
            if (type == DataType.BF16) {
                short first = tensor.data().get(ValueLayout.JAVA_SHORT_UNALIGNED, 0);
                assertThat(Float.intBitsToFloat(first << 16)).isBetween(0f, 1f);
            }
        }
    }

    /** As a first request of a sequence has them. A sample may give its own. */
    @Test
    void addsControlsAndStatesOfASequence() {
        String sequences = """
                sequence_batching {
                  control_input [
                    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 3, 4 ] } ] },
                    { name: "END" control [ { kind: CONTROL_SEQUENCE_END fp32_false_true: [ 0, 1 ] } ] },
                    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } ] },
                    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] }
                  ]
                  state [ { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: [ 2 ] } ]
                }
                """;
        try (WarmupSamples read = read(sequences + sample("a", "batch_size: 1", "dims: [ 2 ] zero_data: true"))) {
            Map<String, Tensor> inputs = inputs(read);
            assertThat(inputs.keySet()).containsExactly("IN", "START", "END", "READY", "ID", "SUM_IN");
            assertThat(inputs.get("START").data().get(ValueLayout.JAVA_INT, 0)).isEqualTo(4);
            assertThat(inputs.get("END").data().get(ValueLayout.JAVA_FLOAT, 0)).isZero();
            assertThat(inputs.get("READY").data().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
            assertThat(inputs.get("ID").strings()).containsExactly("1");
            assertThat(inputs.get("ID").shape()).isEqualTo(Shape.of(1, 1));
            assertThat(inputs.get("SUM_IN").shape()).isEqualTo(Shape.of(1, 2));
            assertThat(inputs.get("SUM_IN").data().toArray(ValueLayout.JAVA_FLOAT))
                    .containsExactly(0, 0);
        }
        String given = sample("a", "batch_size: 1", "dims: [ 2 ] zero_data: true")
                .replace(
                        "inputs {",
                        "inputs { key: \"END\" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } inputs {");
        try (WarmupSamples read = read(sequences + given)) {
            assertThat(inputs(read).keySet()).containsExactlyInAnyOrder("IN", "START", "END", "READY", "ID", "SUM_IN");
        }
    }

    private static Map<String, Tensor> inputs(WarmupSamples read) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        CheckedRequest request = read.samples().getFirst().batch().get().getFirst();
        for (NamedTensor input : request.inputs()) {
            inputs.put(input.name(), input.tensor());
        }
        return inputs;
    }

    @Test
    void readsTheBeginningOfAFile() throws IOException {
        file("data", new byte[] {0, 0, (byte) 0x80, 0x3f, 0, 0, 0, 0x40, 9, 9, 9});

        try (WarmupSamples read = read(sample("a", "batch_size: 1", "dims: [ 2 ] input_data_file: \"data\""))) {
            assertThat(input(read).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
                    .containsExactly(1, 2);
        }
    }

    @Test
    void readsTheFirstStringsOfAFile() throws IOException {
        file("texts", new byte[] {1, 0, 0, 0, 'a', 2, 0, 0, 0, 'b', 'c', 1, 0, 0, 0, 'd'});

        try (WarmupSamples read = read(strings("dims: [ 2 ] input_data_file: \"texts\""))) {
            assertThat(input(read).strings()).containsExactly("a", "bc");
        }
    }

    @Test
    void refusesAFileOfTooFewStrings() throws IOException {
        file("texts", new byte[] {1, 0, 0, 0, 'a'});

        assertRefused(
                strings("dims: [ 2 ] input_data_file: \"texts\""),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': [request id: a] expected 2 string elements for inference input 'IN' for"
                        + " model 'm', got 1; ");
    }

    @Test
    void refusesAShortFile() throws IOException {
        file("data", new byte[7]);

        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ] input_data_file: \"data\""),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': warmup setting expects 8 bytes, but the data provided from dataonly has 7 bytes.; ");
    }

    @Test
    void refusesAFileThatIsNotThere() {
        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ] input_data_file: \"data\""),
                ErrorCode.INTERNAL,
                "failed to run warmup sample 'a': failed to open text file for read data: No such file or directory; ");
    }

    @ParameterizedTest
    @ValueSource(strings = {"../outside", "/../outside", "sub/../../outside", "link"})
    void refusesAFileOutsideOfTheDirectory(String name) throws IOException {
        Files.write(directory.resolve("outside"), new byte[8]);
        file("sub/other", new byte[8]);
        Files.createSymbolicLink(directory.resolve("warmup/link"), directory.resolve("outside"));

        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ] input_data_file: \"" + name + "\""),
                ErrorCode.UNSUPPORTED,
                "failed to run warmup sample 'a': file path '" + name
                        + "' is outside of the model's warmup directory; ");
    }

    @Test
    void refusesADirectory() throws IOException {
        file("sub/other", new byte[8]);

        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ] input_data_file: \"sub\""),
                ErrorCode.INTERNAL,
                "failed to run warmup sample 'a': failed to open text file for read sub: Not a file; ");
    }

    @Test
    void refusesVariableDimensions() {
        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2, -1 ] zero_data: true"),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': warmup setting expects all variable-size dimensions are specified for input 'IN'; ");
    }

    @Test
    void refusesAnInputWithoutData() {
        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ]"),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': warmup setting expects input 'IN' to have input_data_type set; ");
    }

    @ParameterizedTest
    @ValueSource(strings = {"dims: [ 9223372036854775807, 2 ]", "dims: [ 4611686018427387904 ]"})
    void refusesSizesThatOverflow(String dims) {
        for (String data : List.of(" zero_data: true", " random_data: true", " input_data_file: \"data\"")) {
            assertThatThrownBy(() -> read(sample("a", "batch_size: 1", dims + data)))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessageStartingWith("failed to run warmup sample 'a': ");
        }
        assertThat(memory.maxBytesRequested()).isZero();
    }

    @Test
    void givesBackWhatItTookWhenThereIsNoMemory() {
        String large = sample("a", "batch_size: 1", "dims: [ 16 ] zero_data: true")
                + "model_warmup { name: \"b\" batch_size: 1 inputs { key: \"IN\" value { data_type: TYPE_FP32 dims:"
                + " [ 1000000 ] zero_data: true } } }";

        assertThatThrownBy(() -> read(large))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessageStartingWith("failed to run warmup sample 'b': ");

        assertThat(memory.buffersInUse()).isZero();
    }

    @Test
    void refusesABatchThatTheModelDoesNotTake() {
        assertRefused(
                sample("a", "batch_size: 9", "dims: [ 2 ] zero_data: true"),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': batch size 9 for 'm', max allowed is 8; ");
        assertRefused(
                sample("a", "batch_size: 4294967295", "dims: [ 2 ] zero_data: true"),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': batch size 4294967295 for 'm', max allowed is 8; ");
    }

    @Test
    void refusesARequestThatDoesNotFitTheModel() {
        assertRefused(
                "input { name: \"IN\" data_type: TYPE_FP32 dims: [ 2 ] }\nmodel_warmup { name: \"a\" batch_size: 1 }",
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': [request id: a] expected 1 inputs but got 0 inputs for model 'm'."
                        + " Got input(s) [], but missing required input(s) ['IN']. Please provide all required input(s).; ");
        assertThatThrownBy(() -> read(sample("a", "batch_size: 1", "dims: [ 2, 2 ] zero_data: true")))
                .hasMessageStartingWith("failed to run warmup sample 'a': ")
                .hasMessageContaining("unexpected shape for input 'IN'");
    }

    @Test
    void refusesAnInputWithoutType() {
        assertRefused(
                sample("a", "batch_size: 1", "dims: [ 2 ] zero_data: true")
                        .replace("data_type: TYPE_FP32 dims: [ 2 ] zero", "dims: [ 2 ] zero"),
                ErrorCode.INVALID_ARGUMENT,
                "failed to run warmup sample 'a': input 'IN' must specify 'data_type'; ");
    }

    @Test
    void passesUnknownInputsOn() {
        String config =
                sample("a", "batch_size: 2", "dims: [ 2 ] zero_data: true").replace("inputs {", """
                        inputs { key: "START" value { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } }
                        inputs {""");

        try (WarmupSamples read = read(config)) {
            CheckedRequest request = read.samples().getFirst().batch().get().getFirst();
            assertThat(request.inputs()).extracting(NamedTensor::name).containsExactly("IN", "START");
            assertThat(request.inputs().getLast().tensor().shape()).isEqualTo(Shape.of(1, 1));
            assertThat(request.inputs().getLast().tensor().type()).isEqualTo(DataType.INT32);
        }
    }

    @Test
    void givesNoBatchDimensionToModelsWithoutOne() {
        try (WarmupSamples read = read("max_batch_size: 0\n"
                + sample("a", "batch_size: 1", "dims: [ 2 ] zero_data: true").replace("max_batch_size: 8", ""))) {
            assertThat(input(read).shape()).isEqualTo(Shape.of(2));
        }
    }

    @Test
    void reshapesAsForAnyRequest() {
        String config = """
                input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }
                model_warmup { name: "a" batch_size: 1 inputs {
                  key: "IN" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } }
                """;

        try (WarmupSamples read = read(config)) {
            assertThat(input(read).shape()).isEqualTo(Shape.of(1, 2, 2));
        }
    }

    private void assertRefused(String config, ErrorCode code, String text) {
        assertThatThrownBy(() -> read(config))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessage(text);
        assertThat(memory.buffersInUse()).isZero();
    }

    private static Tensor input(WarmupSamples read) {
        List<CheckedRequest> requests = read.samples().getFirst().batch().get();
        return requests.getFirst().inputs().getFirst().tensor();
    }

    private static String sample(String name, String setting, String input) {
        return """
                input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
                model_warmup { name: "%s" %s inputs { key: "IN" value { data_type: TYPE_FP32 %s } } }
                """.formatted(name, setting, input);
    }

    private static String strings(String input) {
        return sample("a", "batch_size: 1", input).replace("TYPE_FP32", "TYPE_STRING");
    }

    private WarmupSamples read(String more) {
        String batch = more.contains("max_batch_size") ? "" : "max_batch_size: 8\n";
        ModelConfig config = ModelConfigReader.parse(
                "test/config.pbtxt",
                "name: \"m\" backend: \"b\"\n" + batch + "output { name: \"OUT\" data_type: TYPE_FP32 dims: [ -1 ] }\n"
                        + more);
        ModelSettings settings = ModelSettingsReader.settings(config, 3);
        RequestChecks checks = RequestChecks.forModel(settings, padded);
        List<NamedTensor> first = SequencePlanReader.plan(ConfigNormalization.normalize(config), settings, directory)
                .map(plan -> plan.firstInputs(settings.batches()))
                .orElse(List.of());
        return WarmupSamples.read(config, checks, settings, first, directory, memory, new Random(1));
    }

    private void file(String name, byte[] content) throws IOException {
        Path file = directory.resolve("warmup").resolve(name);
        Files.createDirectories(file.getParent());
        Files.write(file, content);
    }
}
