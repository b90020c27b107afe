package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.distribution.process.StartException;
import dev.nereid.plugin.cache.CacheOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class CacheFlagsTest {
    private static final Path OWN = Path.of("caches");
    private static final Map<String, String> ENVIRONMENT = Map.of("TRITONCACHE_REDIS_PASSWORD", "secret");

    private static Optional<CacheOptions> options(String... arguments) throws UsageException, StartException {
        CacheFlags cache = new CacheFlags();
        Flags flags = new Flags();
        cache.declare(flags);
        flags.read(List.of(arguments), Map.of());
        return cache.options(OWN, ENVIRONMENT);
    }

    @Test
    void configuresNoCacheByDefault() throws UsageException, StartException {
        assertThat(options()).isEmpty();
        assertThat(options("--cache-directory=more")).isEmpty();
    }

    @Test
    void collectsTheSettingsOfOneCache() throws UsageException, StartException {
        assertThat(options("--cache-config=redis,host=a=b", "--cache-config", "redis,port=1", "--cache-directory=more"))
                .contains(new CacheOptions(
                        "redis", Map.of("host", "a=b", "port", "1"), List.of(Path.of("more"), OWN), ENVIRONMENT))
                .map(CacheOptions::toString)
                .contains("redis");
    }

    @Test
    void takesTheOldFlagForALocalCache() throws UsageException, StartException {
        assertThat(options("--response-cache-byte-size=4096")).contains(CacheOptions.local(4096));
    }

    @Test
    void refusesTwoCaches() {
        assertThatThrownBy(() -> options("--cache-config=local,size=1", "--cache-config=redis,host=a"))
                .isInstanceOf(StartException.class)
                .hasMessage("--cache-config: found multiple cache configurations, but only a single cache is currently"
                        + " supported: redis, and local was given before");
        assertThatThrownBy(() -> options("--cache-config=local,size=1", "--response-cache-byte-size=1"))
                .isInstanceOf(StartException.class)
                .hasMessage(
                        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please"
                                + " provide one or the other: these are incompatible flags.");
    }

    @Test
    void refusesASettingWithoutCacheKeyOrValue() {
        for (String wrong : List.of("local", "size=1", ",size=1", "local,=1", "local,size", "local,size=", "")) {
            assertThatThrownBy(() -> options("--cache-config=" + wrong))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--cache-config: '" + wrong + "' (expected: --cache-config option format is '<cache"
                            + " name>,<setting>=<value>')");
        }
    }
}
