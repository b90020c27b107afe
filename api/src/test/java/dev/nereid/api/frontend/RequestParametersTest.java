package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

final class RequestParametersTest {
    private final RequestParameters parameters = new RequestParameters();

    @Test
    void hasDefaultsWithoutParameters() {
        assertThat(parameters.options(OptionalLong.empty())).isEqualTo(RequestOptions.DEFAULT);
        assertThat(parameters.backendParameters()).isEmpty();
        assertThat(parameters.backendParameterCount()).isZero();
    }

    @Test
    void readsSchedulingOptions() {
        parameters.read("sequence_id", new Reader(7));
        parameters.read("sequence_start", new Reader(1));
        parameters.read("sequence_end", new Reader(0));
        parameters.read("priority", new Reader(2));
        parameters.read("timeout", new Reader(-1));

        assertThat(parameters.options(OptionalLong.of(9)))
                .isEqualTo(new RequestOptions(
                        2, -1, OptionalLong.of(9), Optional.of(new Sequence(new Sequence.Id.Numeric(7), true, false))));
        assertThat(parameters.backendParameters()).isEmpty();
    }

    @Test
    void hasNoSequenceWithoutAnId() {
        parameters.read("sequence_id", new Reader(0));
        parameters.read("sequence_start", new Reader(1));

        assertThat(parameters.options(OptionalLong.empty()).sequence()).isEmpty();
    }

    @Test
    void usesTheLastOfEqualSchedulingOptions() {
        parameters.read("priority", new Reader(2));
        parameters.read("priority", new Reader(3));

        assertThat(parameters.options(OptionalLong.empty()).priority()).isEqualTo(3);
    }

    @Test
    void usesTheFirstOfEqualParametersForTheBackend() {
        parameters.read("b", new Reader(1));
        parameters.read("a", new Reader(2));
        parameters.read("b", new Reader(3));

        assertThat(parameters.backendParameters())
                .containsExactly(Map.entry("b", new ParameterValue.Int(1)), Map.entry("a", new ParameterValue.Int(2)));
        assertThat(parameters.backendParameterCount()).isEqualTo(2);
    }

    @Test
    void returnsUnmodifiableParameters() {
        parameters.read("a", new Reader(1));
        Map<String, ParameterValue> read = parameters.backendParameters();

        assertThatThrownBy(() -> read.remove("a")).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void refusesReservedNames() {
        assertThatThrownBy(() -> parameters.read("triton_", new Reader(1)))
                .isInstanceOf(InferenceException.class)
                .hasMessage("reserved");
        assertThatThrownBy(() -> parameters.read("triton_enable_empty_final_response", new Reader(1)))
                .hasMessage("reserved");
        parameters.read("Triton_x", new Reader(1));
        assertThat(parameters.backendParameters()).containsOnlyKeys("Triton_x");
    }

    /** Decodes one number as everything. */
    private record Reader(long value) implements ParameterReader {
        @Override
        public Optional<Sequence.Id> sequenceId() {
            return value == 0 ? Optional.empty() : Optional.of(new Sequence.Id.Numeric(value));
        }

        @Override
        public boolean bool(String name) {
            return value != 0;
        }

        @Override
        public long priority() {
            return value;
        }

        @Override
        public long timeoutMicros() {
            return value;
        }

        @Override
        public ParameterValue value(String name) {
            return new ParameterValue.Int(value);
        }

        @Override
        public InferenceException reserved() {
            return new InferenceException(ErrorCode.INVALID_ARGUMENT, "reserved");
        }
    }
}
