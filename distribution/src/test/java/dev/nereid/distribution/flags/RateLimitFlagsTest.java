package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.server.options.RateLimitOptions;
import dev.nereid.server.options.RateLimitOptions.Resource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** The flags of the rate limiter. */
final class RateLimitFlagsTest {
    private static Optional<RateLimitOptions> options(String... arguments) throws UsageException {
        RateLimitFlags rate = new RateLimitFlags();
        Flags flags = new Flags();
        rate.declare(flags);
        flags.read(List.of(arguments), Map.of());
        return rate.options();
    }

    @Test
    void isOffByDefault() throws UsageException {
        assertThat(options()).isEmpty();
        assertThat(options("--rate-limit=off")).isEmpty();
        assertThat(options("--rate-limit-resource=R:1"))
                .as("has no meaning then")
                .isEmpty();
    }

    @Test
    void countsExecutions() throws UsageException {
        assertThat(options("--rate-limit=execution_count")).contains(new RateLimitOptions(List.of()));
        assertThat(options("--rate-limit=EXECUTION_COUNT")).isPresent();
    }

    @Test
    void takesResourcesAsTheReferenceWritesThem() throws UsageException {
        assertThat(options(
                        "--rate-limit=execution_count",
                        "--rate-limit-resource=R:4",
                        "--rate-limit-resource",
                        "r:0:2",
                        "--rate-limit-resource=R:4"))
                .contains(new RateLimitOptions(List.of(
                        new Resource("R", 4, OptionalInt.empty()),
                        new Resource("r", 0, OptionalInt.of(2)),
                        new Resource("R", 4, OptionalInt.empty()))));
    }

    @Test
    void refusesWhatIsNoMode() {
        for (String wrong : List.of("on", "", "count")) {
            assertThatThrownBy(() -> options("--rate-limit=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--rate-limit: '" + wrong + "' (expected: off or execution_count)");
        }
    }

    @Test
    void refusesWhatIsNoResource() {
        for (String wrong :
                List.of("R", "R:", ":1", "R:many", "R:-1", "R:1:", "R:1:-1", "R:1:2:3", "R:4294967296", "")) {
            assertThatThrownBy(() -> options("--rate-limit-resource=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--rate-limit-resource: '" + wrong
                            + "' (expected: name:count or name:count:device, both numbers whole and 0 or more)");
        }
    }
}
