package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.http.HttpOptions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class HttpFlagsTest {
    private static HttpOptions options(List<String> arguments) throws UsageException {
        HttpFlags http = new HttpFlags();
        Flags flags = new Flags();
        http.declare(flags);
        flags.read(arguments, Map.of());
        return http.options(1, ConnectionLimiter.unlimited(), Duration.ofSeconds(30));
    }

    @ParameterizedTest
    @CsvSource({
        "'', 67108864, 2147483648",
        "--http-max-input-size=1000, 1000, 1000",
        "--http-max-input-size=67108864, 67108864, 67108864",
        "--http-max-input-size=2147483647, 2147483647, 2147483647",
        "--http-max-request-size=100000000, 67108864, 100000000",
        "--http-max-request-size=10, 67108864, 67108864",
        "--http-max-input-size=1000 --http-max-request-size=5000, 1000, 5000",
        "--http-max-input-size=5000 --http-max-request-size=1000, 5000, 5000"
    })
    void boundsTheWholeRequestByTheInputSizeIfThatIsGiven(String arguments, long json, long all) throws UsageException {
        HttpOptions options = options(Arrays.stream(arguments.split(" ", -1))
                .filter(argument -> !argument.isEmpty())
                .toList());

        assertThat(options.bodyLimits().maxJsonBytes()).isEqualTo(json);
        assertThat(options.bodyLimits().maxRequestBytes()).isEqualTo(all);
    }
}
