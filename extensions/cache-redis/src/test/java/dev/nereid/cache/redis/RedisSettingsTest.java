package dev.nereid.cache.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.cache.CacheKey;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class RedisSettingsTest {
    @Test
    void hasDefaults() {
        RedisSettings settings = RedisSettings.of(Map.of("host", "store"), Map.of());

        assertThat(settings.address().port()).isEqualTo(6379);
        assertThat(settings.address().database()).isZero();
        assertThat(settings.timeouts().command()).isEqualTo(Duration.ofSeconds(1));
        assertThat(settings.tls().enabled()).isFalse();
        assertThat(settings).hasToString("store:6379");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            port | 0 | port: '0' (expected: a whole number from 1 to 65535)
            port | x | port: 'x' (expected: a whole number from 1 to 65535)
            db | -1 | db: '-1' (expected: a whole number from 0 to 2147483647)
            socket_timeout | 0 | socket_timeout: '0' (expected: a whole number from 1 to 2147483647)
            tls_enabled | maybe | tls_enabled: 'maybe' (expected: true or false)
            cert | a.pem | cert and key: one of them is missing (expected: both or none)
            """)
    void refusesWhatItCannotUse(String name, String value, String message) {
        assertThatThrownBy(() -> RedisSettings.of(Map.of("host", "store", name, value), Map.of()))
                .isInstanceOf(BackendException.class)
                .hasMessage(message);
    }

    @Test
    void refusesWhatItDoesNotKnowAndAMissingHost() {
        assertThatThrownBy(() -> RedisSettings.of(Map.of("host", "store", "hots", "x"), Map.of()))
                .hasMessageStartingWith("hots: unknown setting (expected: one of [cacert, cert, ");
        assertThatThrownBy(() -> RedisSettings.of(Map.of("port", "1"), Map.of()))
                .hasMessage("host: missing (expected: redis,host=HOST)");
    }

    @Test
    void prefersCredentialsOfTheCommandLine() {
        Map<String, String> environment =
                Map.of("TRITONCACHE_REDIS_USERNAME", "variable", "TRITONCACHE_REDIS_PASSWORD", "secret");

        assertThat(RedisSettings.of(Map.of("host", "h"), environment).credentials())
                .isEqualTo(new RedisCredentials("variable", "secret"));
        assertThat(RedisSettings.of(Map.of("host", "h", "user", "u"), environment)
                        .credentials())
                .isEqualTo(new RedisCredentials("u", "secret"));
        assertThat(RedisSettings.of(Map.of("host", "h", "user", "u", "password", "p"), environment)
                        .credentials())
                .isEqualTo(new RedisCredentials("u", "p"))
                .asString()
                .doesNotContain("p");
    }

    @Test
    void namesKeysForPeople() {
        EntryCodec codec = new EntryCodec();
        CacheKey key = new CacheKey(0x0123456789abcdefL, -1);

        assertThat(StandardCharsets.US_ASCII.decode(codec.encodeKey(key)).toString())
                .isEqualTo("nereid:0123456789abcdefffffffffffffffff");
        assertThat(codec.decodeKey(codec.encodeKey(key))).isEqualTo(key);
    }
}
