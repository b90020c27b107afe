package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.server.memory.TensorMemoryBound;
import dev.nereid.server.options.SchedulingOptions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The flags that limit requests and bytes in flight. */
final class AdmissionFlagsTest {
    private static AdmissionFlags read(Map<String, String> environment, String... arguments) throws UsageException {
        AdmissionFlags load = new AdmissionFlags();
        Flags flags = new Flags();
        load.declare(flags);
        flags.read(List.of(arguments), environment);
        return load;
    }

    private static AdmissionFlags read(String... arguments) throws UsageException {
        return read(Map.of(), arguments);
    }

    @Test
    void boundsTheRequestsOfTheServerByDefault() throws UsageException {
        AdmissionFlags load = read();

        assertThat(load.requests).isEqualTo(SchedulingOptions.defaultMaxRequests());
        assertThat(load.inFlightBytes(TensorMemoryBound.of(1000))).isEqualTo(750);
        assertThat(List.of(load.modelRequests, load.modelBytes)).containsOnly(0L);
    }

    @Test
    void setsEachBound() throws UsageException {
        AdmissionFlags load = read(
                Map.of("NEREID_MODEL_MAX_INFLIGHT_BYTES", "4"),
                "--max-inflight-requests=1",
                "--max-inflight-bytes=9223372036854775807",
                "--model-max-inflight-requests",
                "3");

        assertThat(load.requests).isEqualTo(1);
        assertThat(load.bytes).hasValue(Long.MAX_VALUE);
        assertThat(load.modelRequests).isEqualTo(3);
        assertThat(load.modelBytes).isEqualTo(4);
    }

    @Test
    void takesAwayEachBound() throws UsageException {
        assertThat(read("--max-inflight-requests=0").requests).isZero();
        assertThat(read("--max-inflight-bytes=0").inFlightBytes(TensorMemoryBound.of(1000)))
                .isZero();
    }

    @Test
    void refusesWhatIsNoBound() {
        for (String wrong : List.of("-1", "many", "", "1.5", "9223372036854775808", "1k")) {
            assertThatThrownBy(() -> read("--max-inflight-requests=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--max-inflight-requests: '" + wrong + "' (expected: a whole number, 0 or more)");
            assertThatThrownBy(() -> read("--model-max-inflight-bytes=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--model-max-inflight-bytes: '" + wrong + "' (expected: a number of bytes, 0 or more)");
        }
    }
}
