package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import dev.nereid.plugin.cache.CacheOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Flags of the response cache. Written by the command line reader, then only read. */
final class CacheFlags {
    private final List<FlagValue.CacheSetting> settings = new ArrayList<>();
    private final List<Path> directories = new ArrayList<>();
    private Optional<Long> localBytes = Optional.empty();

    void declare(Flags flags) {
        flags.add("--cache-config", FlagValue.CACHE_SETTING, settings::add)
                .help("A setting of the response cache, for models with response_cache, as in local,size=1048576 or"
                        + " redis,host=127.0.0.1. May be given several times, for one cache. Default: no cache. The"
                        + " user and password of redis may also be the environment variables"
                        + " TRITONCACHE_REDIS_USERNAME and TRITONCACHE_REDIS_PASSWORD.");
        flags.add("--cache-directory", FlagValue.DIRECTORY, directories::add)
                .help("A directory of cache plugins besides the server's own.");
        flags.add("--response-cache-byte-size", FlagValue.BODY_BYTES, v -> localBytes = Optional.of(v))
                .help("Deprecated: the same as --cache-config=local,size=BYTES.");
    }

    /** Returns the options of the response cache, if any; {@code own} has the caches that come with the server. */
    Optional<CacheOptions> options(Path own, Map<String, String> environment) throws StartException {
        if (localBytes.isPresent()) {
            if (!settings.isEmpty()) {
                throw new StartException(
                        "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please"
                                + " provide one or the other: these are incompatible flags.");
            }
            return localBytes.map(CacheOptions::local);
        }
        if (settings.isEmpty()) {
            return Optional.empty();
        }
        String cache = settings.getFirst().cache();
        Map<String, String> values = new HashMap<>();
        for (FlagValue.CacheSetting setting : settings) {
            if (!setting.cache().equals(cache)) {
                throw new StartException(
                        "--cache-config: found multiple cache configurations, but only a single cache is"
                                + " currently supported: " + setting.cache() + ", and " + cache + " was given before");
            }
            values.put(setting.key(), setting.value());
        }
        List<Path> searched = new ArrayList<>(directories);
        searched.add(own);
        return Optional.of(new CacheOptions(cache, values, searched, environment));
    }
}
