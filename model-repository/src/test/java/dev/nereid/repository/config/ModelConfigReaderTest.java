package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import inference.DataType;
import inference.ModelConfig;
import inference.ModelInput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;

class ModelConfigReaderTest {
    private static final String START = "failed to read text proto from simple/config.pbtxt: ";

    static final List<Arguments> ERRORS = List.of(
            Arguments.of("name: \"a\"\nfoo: 1", "2:1: unknown field 'foo' in ModelConfig (expected: name, platform, "),
            Arguments.of(
                    "input {\n  name: \"x\"\n  dtype: TYPE_FP32\n}",
                    "3:3: unknown field 'dtype' in ModelInput (expected: name, data_type, format, dims, reshape, "
                            + "is_shape_tensor, allow_ragged_batch, optional, is_non_linear_format_io)"),
            Arguments.of("Name: \"a\"", "1:1: unknown field 'Name' in ModelConfig (expected: name, "),
            Arguments.of("[ext.field]: 1", "1:6: unknown field '[ext.field]' in ModelConfig (expected: name, "),
            Arguments.of(
                    "input { data_type: FP32 }",
                    "1:20: unknown value 'FP32' (expected: TYPE_INVALID, TYPE_BOOL, TYPE_UINT8, "),
            Arguments.of(
                    "instance_group { kind: CPU }",
                    "1:24: unknown value 'CPU' (expected: KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL)"),
            Arguments.of(
                    "max_batch_size: 1\nmax_batch_size: 2",
                    "2:15: field 'max_batch_size' is given twice (expected: at most once)"),
            Arguments.of(
                    "optimization {}\noptimization {}", "2:1: field 'optimization' is given twice (expected: at most"),
            Arguments.of(
                    "dynamic_batching {}\nsequence_batching {}",
                    "2:1: field 'sequence_batching' is given beside 'dynamic_batching'"
                            + " (expected: at most one of the two)"),
            Arguments.of("max_batch_size: 1.5", "1:17: Expected integer, got: 1.5 (expected: an integer)"),
            Arguments.of("max_batch_size: \"8\"", "1:17: Expected integer, got: \"8\" (expected: an integer)"),
            Arguments.of("max_batch_size: 08", "1:17: Expected integer, got: 08 (expected: an integer)"),
            Arguments.of(
                    "max_batch_size: 2147483648",
                    "1:17: Integer out of range (2147483648) (expected: a 32-bit signed integer)"),
            Arguments.of(
                    "dynamic_batching { max_queue_delay_microseconds: -1 }",
                    "1:50: Expected integer, got: -1 (expected: an integer of 0 or more)"),
            Arguments.of(
                    "ensemble_scheduling { max_inflight_requests: -5 }",
                    "1:46: Expected integer, got: -5 (expected: an integer of 0 or more)"),
            Arguments.of(
                    "ensemble_scheduling { max_inflight_requests: \"invalid_value\" }",
                    "1:46: Expected integer, got: \"invalid_value\" (expected: an integer)"),
            Arguments.of(
                    "ensemble_scheduling { max_inflight_requests: 12345678901 }",
                    "1:46: Integer out of range (12345678901) (expected: a 32-bit unsigned integer)"),
            Arguments.of("max_batch_size:", "1:16: Expected integer, got: the end of the file (expected: an integer)"),
            Arguments.of(
                    "sequence_batching { direct { minimum_slot_utilization: x } }",
                    "1:56: found 'x' (expected: a number)"),
            Arguments.of(
                    "model_transaction_policy { decoupled: yes }", "1:39: found 'yes' (expected: 'true' or 'false')"),
            Arguments.of("input {\n  dims: [ 1, 2, ]\n}", "2:17: Expected integer, got: ] (expected: an integer)"),
            Arguments.of("name: simple", "1:7: found 'simple' (expected: a string)"),
            Arguments.of("name \"simple\"", "1:6: found '\"simple\"' (expected: ':')"),
            Arguments.of("name: 'it", "1:7: found \"'it\" (expected: a string that ends on the same line"),
            Arguments.of("name: 'a\\z'", "1:7: Invalid escape sequence: '\\z'"),
            Arguments.of("input: 5", "1:8: found '5' (expected: '{')"),
            Arguments.of("input {\n  name: \"x\"\n", "3:1: found the end of the file (expected: '}')"),
            Arguments.of("name: \"a\" }", "1:11: found '}' (expected: a name)"),
            Arguments.of("name: \"a\" /* no comment */", "1:11: found '/*' (expected: a name)"));

    @ParameterizedTest
    @FieldSource("ERRORS")
    void reportsPositionAndExpectation(String text, String message) {
        InferenceException error = failure(text);

        assertThat(error.publicMessage()).startsWith(START + message).doesNotContain("\n");
        assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
    }

    /** The fields of an unknown message are skipped, however deep they are. */
    @Test
    void namesTheMaximumDepth() {
        String deep = "x { ".repeat(200) + "} ".repeat(200);

        assertThat(failure(deep).publicMessage())
                .endsWith("messages are nested too deep (expected: at most 100 levels)");
    }

    @Test
    void describesTheFirstProblemsAndCountsTheOthers() {
        String text = "aaaaaaaaaaaaaaaa: 1\n".repeat(7);

        assertThat(failure(text).publicMessage())
                .contains("; 5:1: unknown field")
                .doesNotContain("6:1: ")
                .endsWith("; and 2 more");
    }

    @Test
    void countsNoProblemsBeyondTheEndOfTheSearch() {
        assertThat(failure("aaaaaaaaaaaaaaaa: 1\n".repeat(150)).publicMessage())
                .contains("; 5:1: unknown field")
                .endsWith("; and more");
    }

    @Test
    void reportsASecondByteOrderMark() {
        assertThat(failure("\uFEFF\uFEFFname: 'a'").publicMessage())
                .startsWith(START + "1:1: ")
                .contains("(expected: a name)");
    }

    static final List<Arguments> GRAMMAR = List.of(
            Arguments.of("name: \"a\" 'b'\n\"c\"", "name: \"abc\""),
            Arguments.of("# all\nname: 'a' # of it", "name: \"a\""),
            Arguments.of("\uFEFFname: 'a'", "name: \"a\""),
            Arguments.of("name: 'a\\x41\\101\\t\\?\\u00e9'", "name: \"aAA\\t?\u00e9\""),
            Arguments.of("max_batch_size: 0x10", "max_batch_size: 16"),
            Arguments.of("max_batch_size: 010", "max_batch_size: 8"),
            Arguments.of("max_batch_size: -1", "max_batch_size: -1"),
            Arguments.of("input < name: 'x' >", "input { name: \"x\" }"),
            Arguments.of("input: < name: 'x' >;", "input { name: \"x\" }"),
            Arguments.of("input: { name: 'x' },", "input { name: \"x\" }"),
            Arguments.of("input [ { name: 'x' }, < name: 'y' > ]", "input { name: \"x\" } input { name: \"y\" }"),
            Arguments.of("input: [ { name: 'x' } ]", "input { name: \"x\" }"),
            Arguments.of("input []", ""),
            Arguments.of("input { dims: 1 dims: 2, dims: [3, -1]; }", "input { dims: 1 dims: 2 dims: 3 dims: -1 }"),
            Arguments.of("input { reshape: { shape: [ ] } }", "input { reshape { } }"),
            Arguments.of("input { data_type: 11 }", "input { data_type: TYPE_FP32 }"),
            Arguments.of("input { data_type: TYPE_FP32 }", "input { data_type: TYPE_FP32 }"),
            Arguments.of(
                    "input [ {optional: t}, {optional: True}, {optional: 1}, {optional: true} ]",
                    "input { optional: true } input { optional: true } input { optional: true }"
                            + " input { optional: true }"),
            Arguments.of(
                    "input [ {optional: f}, {optional: False}, {optional: 0}, {optional: false} ]",
                    "input {} input {} input {} input {}"),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: 0.5f } }", floats("0.5")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: 1 } }", floats("1.0")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: .5 } }", floats("0.5")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: 5.e-1F } }", floats("0.5")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: inf } }", floats("infinity")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: -infinity } }", floats("-inf")),
            Arguments.of("sequence_batching { direct { minimum_slot_utilization: nan } }", floats("NaN")),
            Arguments.of(
                    "parameters { key: 'a' value { string_value: 'b' } }",
                    "parameters { key: 'a' value: < string_value: 'b' > }"),
            Arguments.of(
                    "parameters: [ { key: 'a', value: { string_value: 'b' } }, { key: 'c' value { } } ]",
                    "parameters { key: 'a' value { string_value: 'b' } } parameters { key: 'c' value { } }"),
            Arguments.of(
                    "dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }",
                    "dynamic_batching { max_queue_delay_microseconds: 0xffffffffffffffff }"));

    private static String floats(String value) {
        return "sequence_batching { direct { minimum_slot_utilization: " + value + " } }";
    }

    @ParameterizedTest
    @FieldSource("GRAMMAR")
    void acceptsEverySpelling(String text, String plain) {
        assertThat(Configs.config(text)).isEqualTo(Configs.config(plain));
    }

    @Test
    void readsWhatIsWritten() {
        ModelConfig config = Configs.config("""
                name: "m"
                max_batch_size: 0x8
                input [ { name: "x" data_type: TYPE_STRING dims: [ -1, 2 ] reshape { shape: [] } } ]
                """);

        ModelInput input = config.getInput(0);
        assertThat(config.getName()).isEqualTo("m");
        assertThat(config.getMaxBatchSize()).isEqualTo(8);
        assertThat(input.getDataType()).isEqualTo(DataType.TYPE_STRING);
        assertThat(input.getDimsList()).containsExactly(-1L, 2L);
        assertThat(input.hasReshape()).isTrue();
    }

    @Test
    void namesTheFileRelativeToItsRepository(@TempDir Path repository) throws IOException {
        Path model = Files.createDirectories(repository.resolve("simple/configs"));
        Path chosen = Files.writeString(model.resolve("small.pbtxt"), "foo: 1");
        Path usual = Files.writeString(repository.resolve("simple/config.pbtxt"), "foo: 1");

        assertThat(failure(() -> ModelConfigReader.read(repository, chosen)).publicMessage())
                .startsWith("failed to read text proto from simple/configs/small.pbtxt: 1:1: ");
        assertThat(failure(() -> ModelConfigReader.read(usual)).publicMessage()).startsWith(START + "1:1: ");
    }

    @Test
    void distinguishesAMissingFileFromABrokenOne(@TempDir Path repository) throws IOException {
        Path model = Files.createDirectories(repository.resolve("simple"));
        Path file = model.resolve("config.pbtxt");

        assertThat(failure(() -> ModelConfigReader.read(file)).code()).isEqualTo(ErrorCode.INTERNAL);

        Files.write(file, "name: \"\u00ff\"".getBytes(StandardCharsets.ISO_8859_1));
        InferenceException broken = failure(() -> ModelConfigReader.read(file));
        assertThat(broken.publicMessage()).isEqualTo(START + "1:8: byte 0xff is no UTF-8 (expected: UTF-8 text)");
        assertThat(broken.code()).isEqualTo(ErrorCode.INTERNAL);
    }

    private static InferenceException failure(String text) {
        return failure(() -> ModelConfigReader.parse("simple/config.pbtxt", text));
    }

    private static InferenceException failure(org.assertj.core.api.ThrowableAssert.ThrowingCallable reading) {
        return catchThrowableOfType(InferenceException.class, reading);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            max_batch_size: 0            | true
            max_batch_size: 8            | true
            name: "m" max_batch_size:0x0 | true
            ''                           | false
            name: "max_batch_size: 0"    | false
            # max_batch_size: 0          | false
            parameters { key: "max_batch_size" value { string_value: "0" } } | false
            """)
    void knowsWhetherABatchSizeIsWritten(String text, boolean isWritten) {
        assertThat(ModelConfigReader.parseWritten("m/config.pbtxt", text).hasMaxBatchSize())
                .isEqualTo(isWritten);
    }
}
