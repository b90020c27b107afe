package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServerCacheTest {
    private static final CacheKey KEY = new CacheKey(1, 2);

    @TempDir
    private Path directory;

    private final List<String> outcomes = new ArrayList<>();
    private final List<CacheEntry> found = new ArrayList<>();

    private ServerCache open(CacheOptions options) {
        return ServerCache.open(options, new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory, 1, Map.of()));
    }

    private void insert(ServerCache cache, int bytes) {
        byte[] content = new byte[bytes];
        content[bytes - 1] = 7;
        cache.access().cache().insert(KEY, MemorySegment.ofArray(content), new InsertObserver() {
            @Override
            public void stored() {
                outcomes.add("stored");
            }

            @Override
            public void exists() {
                outcomes.add("exists");
            }

            @Override
            public void refused() {
                outcomes.add("refused");
            }

            @Override
            public void failed(String reason) {
                outcomes.add(reason);
            }
        });
    }

    private void lookUp(ServerCache cache) {
        cache.access().cache().lookup(KEY, new LookupObserver() {
            @Override
            public void found(CacheEntry entry) {
                found.add(entry);
            }

            @Override
            public void missing() {
                outcomes.add("missing");
            }

            @Override
            public void failed(String reason) {
                outcomes.add(reason);
            }
        });
    }

    /** The memory of the entry belongs to the server's cache, which is closed before the reader ends. */
    @Test
    void anEntryIsReadAfterTheClose() {
        ServerCache cache = open(CacheOptions.local(1 << 20));
        insert(cache, 100_000);
        lookUp(cache);

        cache.close();

        assertThat(outcomes).containsExactly("stored");
        MemorySegment content = found.getFirst().content();
        assertThat(content.byteSize()).isEqualTo(100_000);
        assertThat(content.get(ValueLayout.JAVA_BYTE, 99_999)).isEqualTo((byte) 7);
        found.getFirst().close();
        assertThat(content.scope().isAlive()).isFalse();
    }

    @Test
    void aClosedCacheStoresNothing() {
        ServerCache cache = open(CacheOptions.local(1 << 20));
        cache.close();

        insert(cache, 10);
        lookUp(cache);

        assertThat(outcomes).containsExactly("refused", "missing");
    }

    @Test
    void refusesASizeThatIsNone() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open(new CacheOptions("local", Map.of("size", "much"), List.of())))
                .withMessageContaining("size: 'much'");
    }
}
