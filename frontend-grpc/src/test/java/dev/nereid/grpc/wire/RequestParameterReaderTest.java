package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

final class RequestParameterReaderTest {
    private static final WireParameter TRUE = new WireParameter.Value(new ParameterValue.Bool(true));
    private static final WireParameter ONE = new WireParameter.Value(new ParameterValue.Int(1));
    private static final WireParameter TEXT = new WireParameter.Value(new ParameterValue.Text("x"));
    private static final WireParameter REAL = new WireParameter.Value(new ParameterValue.Real(1.5));
    private static final WireParameter UNSIGNED = new WireParameter.Unsigned(-1);

    private static RequestOptions options(Map<String, WireParameter> parameters) {
        return RequestParameterReader.read(parameters).options(OptionalLong.of(7));
    }

    private static WireParameter number(long number) {
        return new WireParameter.Value(new ParameterValue.Int(number));
    }

    @Test
    void passesOtherParametersToTheBackend() {
        Map<String, ParameterValue> others = RequestParameterReader.read(
                        Map.of("a", TRUE, "b", ONE, "c", TEXT, "d", REAL, "priority", ONE))
                .backendParameters();

        assertThat(others)
                .isEqualTo(Map.of(
                        "a", new ParameterValue.Bool(true),
                        "b", new ParameterValue.Int(1),
                        "c", new ParameterValue.Text("x"),
                        "d", new ParameterValue.Real(1.5)));
    }

    @Test
    void readsHowToSchedule() {
        assertThat(options(Map.of())).isEqualTo(new RequestOptions(0, 0, OptionalLong.of(7), Optional.empty()));
        assertThat(options(Map.of("priority", UNSIGNED)).priority()).isEqualTo(-1);
        assertThat(options(Map.of("priority", ONE)).priority()).isEqualTo(1);
        assertThat(options(Map.of("timeout", number(-1))).timeoutMicros()).isEqualTo(-1);
        assertThat(options(Map.of("sequence_id", number(-5), "sequence_start", TRUE))
                        .sequence())
                .contains(new Sequence(new Sequence.Id.Numeric(-5), true, false));
        assertThat(options(Map.of("sequence_id", TEXT, "sequence_end", TRUE)).sequence())
                .contains(new Sequence(new Sequence.Id.Text("x"), false, true));
        assertThat(options(Map.of("sequence_id", number(0), "sequence_start", TRUE))
                        .sequence())
                .isEmpty();
        assertThat(RequestParameterReader.read(Map.of("triton_enable_empty_final_response", TRUE))
                        .backendParameters())
                .isEmpty();
    }

    @Test
    void refusesSequenceIdsThatAreLongerThan128Bytes() {
        for (String longest : List.of("x".repeat(128), "é".repeat(64), "€".repeat(42), "\0".repeat(128))) {
            assertThat(options(Map.of("sequence_id", text(longest))).sequence())
                    .contains(new Sequence(new Sequence.Id.Text(longest), false, false));
        }
        for (String tooLong : List.of("x".repeat(129), "é".repeat(65), "€".repeat(43), "x".repeat(1 << 20))) {
            assertThatThrownBy(() -> options(Map.of("sequence_id", text(tooLong))))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            error -> assertThat(error.code()).isEqualTo(ErrorCode.UNSUPPORTED))
                    .hasMessage("string correlation ID cannot be longer than 128 characters");
        }
    }

    private static WireParameter text(String text) {
        return new WireParameter.Value(new ParameterValue.Text(text));
    }

    @Test
    void refusesValuesOfTheWrongType() {
        assertRefused(
                "e",
                UNSIGNED,
                "invalid value type for 'e' parameter, expected int64_param, bool_param, or string_param.");
        assertRefused(
                "a",
                WireParameter.None.INSTANCE,
                "invalid value type for 'a' parameter, expected int64_param, bool_param, or string_param.");
        assertRefused(
                "sequence_id",
                TRUE,
                "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
        assertRefused(
                "sequence_id",
                REAL,
                "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
        assertRefused(
                "sequence_id",
                UNSIGNED,
                "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
        assertRefused("sequence_start", ONE, "invalid value type for 'sequence_start' parameter, expected bool_param.");
        assertRefused("sequence_end", TEXT, "invalid value type for 'sequence_end' parameter, expected bool_param.");
        assertRefused(
                "priority", TEXT, "invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
        assertRefused("priority", number(-1), "invalid value for 'priority', expected value >= 0.");
        assertRefused("timeout", TEXT, "invalid value type for 'timeout' parameter, expected int64_param.");
        assertRefused("timeout", UNSIGNED, "invalid value type for 'timeout' parameter, expected int64_param.");
        assertRefused(
                "triton_enable_empty_final_response",
                ONE,
                "invalid value type for 'triton_enable_empty_final_response' parameter, expected bool_param.");
        assertRefused(
                "triton_foo",
                TEXT,
                "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting"
                        + " with 'triton_' are allowed: triton_enable_empty_final_response");
    }

    private static void assertRefused(String name, WireParameter value, String text) {
        assertThatThrownBy(() -> RequestParameterReader.read(Map.of(name, value)))
                .isInstanceOfSatisfying(
                        InferenceException.class,
                        error -> assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage(text);
    }

    @Test
    void findsSharedMemoryRegions() {
        assertThat(TensorParameters.region("t", Map.of("other", ONE))).isEmpty();
        assertThat(TensorParameters.region(
                        "t",
                        Map.of(
                                "shared_memory_region",
                                TEXT,
                                "shared_memory_byte_size",
                                ONE,
                                "shared_memory_offset",
                                ONE)))
                .contains(new TensorParameters.Region("x", 1, 1));
    }

    @Test
    void refusesSharedMemoryThatIsNotDescribed() {
        assertRegionRefused(
                Map.of("shared_memory_region", TEXT),
                "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 't'");
        assertRegionRefused(
                Map.of("shared_memory_region", ONE, "shared_memory_byte_size", ONE),
                "invalid value type for 'shared_memory_region' parameter for tensor 't', expected string_param.");
        assertRegionRefused(
                Map.of("shared_memory_region", TEXT, "shared_memory_byte_size", TEXT),
                "invalid value type for 'shared_memory_byte_size' parameter for tensor 't', expected int64_param.");
        assertRegionRefused(
                Map.of("shared_memory_region", TEXT, "shared_memory_byte_size", ONE, "shared_memory_offset", TEXT),
                "invalid value type for 'shared_memory_offset' parameter for tensor 't', expected int64_param.");
        assertRegionRefused(
                Map.of("shared_memory_offset", ONE),
                "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 't'");
    }

    private static void assertRegionRefused(Map<String, WireParameter> parameters, String text) {
        assertThatThrownBy(() -> TensorParameters.region("t", parameters))
                .isInstanceOf(InferenceException.class)
                .hasMessage(text);
    }

    @Test
    void checksClassification() {
        assertThat(TensorParameters.classes(Map.of())).isZero();
        assertThat(TensorParameters.classes(Map.of("classification", ONE))).isOne();
        assertThatThrownBy(() -> TensorParameters.classes(Map.of("classification", number(0))))
                .hasMessage("invalid value for 'classification' parameter, expected >= 0");
        assertThatThrownBy(() -> TensorParameters.classes(Map.of("classification", TEXT)))
                .hasMessage("invalid value type for 'classification' parameter, expected int64_param");
    }
}
