package dev.nereid.walkthrough;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import dev.nereid.testkit.RecordedLog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests a response cache in memory. */
final class RecentResponsesTest {
    private final List<String> outcomes = new ArrayList<>();

    @Test
    void findsWhatWasStoredAndEvictsTheLeastRecentlyUsed() {
        try (ResponseCache cache = cache("16")) {
            insert(cache, 1, 8);
            insert(cache, 2, 8);
            insert(cache, 2, 8);
            lookup(cache, 1);
            insert(cache, 3, 8);
            lookup(cache, 2);
            lookup(cache, 1);
            insert(cache, 4, 17);
        }

        assertThat(outcomes)
                .containsExactly(
                        "stored", "stored", "exists", "found 8 of 1", "stored", "missing", "found 8 of 1", "refused");
    }

    @Test
    void namesASizeThatIsNone() {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> cache("much"))
                .withMessage("size: 'much' (expected: a number of bytes)");
    }

    private void insert(ResponseCache cache, int key, int size) {
        MemorySegment content = Arena.ofAuto().allocate(size).fill((byte) key);
        cache.insert(new CacheKey(0, key), content, new InsertObserver() {
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

    private void lookup(ResponseCache cache, int key) {
        cache.lookup(new CacheKey(0, key), new LookupObserver() {
            @Override
            public void found(CacheEntry entry) {
                try (entry) {
                    MemorySegment content = entry.content();
                    assertThat(content.address() % 64).isZero();
                    outcomes.add("found " + content.byteSize() + " of " + content.get(ValueLayout.JAVA_BYTE, 0));
                }
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

    private static ResponseCache cache(String size) {
        return new RecentResponses().create(new CacheContext() {
            @Override
            public Map<String, String> settings() {
                return Map.of("size", size);
            }

            @Override
            public System.Logger logger() {
                return new RecordedLog();
            }
        });
    }
}
