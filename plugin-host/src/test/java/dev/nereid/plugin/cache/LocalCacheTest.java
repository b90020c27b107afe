package dev.nereid.plugin.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class LocalCacheTest {
    private static final int SIZE = 64 * 100;

    @AutoClose
    private final LocalCache cache = new LocalCache(SIZE, new LeakCheckingMemory());

    @Test
    void keepsACopy() {
        MemorySegment content = content(100, 7);
        assertThat(insert(1, content)).isEqualTo("stored");
        content.fill((byte) 0);

        try (CacheEntry entry = lookup(1)) {
            assertThat(entry.content().byteSize()).isEqualTo(100);
            assertThat(entry.content().get(ValueLayout.JAVA_BYTE, 99)).isEqualTo((byte) 7);
            assertThat(entry.content().isReadOnly()).isTrue();
            assertThat(entry.content().address() % 64).isZero();
        }
    }

    @Test
    void keepsTheFirstOfAKey() {
        insert(1, content(10, 1));

        assertThat(insert(1, content(10, 2))).isEqualTo("exists");

        try (CacheEntry entry = lookup(1)) {
            assertThat(entry.content().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 1);
        }
        assertThat(cache.bytesInUse()).isEqualTo(10);
    }

    @Test
    void refusesWhatIsLargerThanAllOfIt() {
        assertThat(insert(1, content(SIZE + 1, 1))).isEqualTo("refused");
        assertThat(insert(2, content(SIZE, 1))).isEqualTo("stored");
        assertThat(cache.bytesInUse()).isEqualTo(SIZE);
    }

    @Test
    void staysWithinItsSize() {
        for (int key = 0; key < 1000; key++) {
            insert(key, content(64 * (1 + key % 5), key));
            assertThat(cache.bytesInUse()).isLessThanOrEqualTo(SIZE);
        }
        assertThat(cache.bytesInUse()).isGreaterThan(SIZE / 2);
    }

    @Test
    void evictsTheLeastRecentlyUsedEntry() {
        for (int key = 1; key <= 4; key++) {
            insert(key, content(SIZE / 4, key));
        }
        lookup(1).close();
        insert(2, content(SIZE / 4, 2)); // which is there, and so not used

        insert(5, content(SIZE / 4, 5));
        assertThat(kept(1, 2, 3, 4, 5)).containsExactly(1, 3, 4, 5); // a use of each, in this order

        insert(6, content(SIZE / 2, 6));
        assertThat(kept(1, 2, 3, 4, 5, 6)).containsExactly(4, 5, 6);
    }

    @Test
    void keepsTheNewestEntryHoweverOftenOthersWereUsed() {
        for (int key = 0; key < 100; key++) {
            insert(key, content(64, key));
            for (int use = 0; use < 10; use++) {
                lookup(key).close();
            }
        }
        for (int key = 100; key < 1000; key++) {
            insert(key, content(64, key));

            assertThat(kept(key)).containsExactly(key);
        }
    }

    /** Also after the end of the cache: a client may read slowly. */
    @Test
    void leavesAnEntryToItsReader() {
        LocalCache other = new LocalCache(SIZE, new LeakCheckingMemory());
        insert(other, 1, content(SIZE, 5));
        CacheEntry entry = lookup(other, 1);
        other.close();

        assertThat(entry.content().get(ValueLayout.JAVA_BYTE, SIZE - 1)).isEqualTo((byte) 5);
        assertThat(other.bytesInUse()).isEqualTo(SIZE);
        entry.close();
        assertThat(other.bytesInUse()).isZero();
    }

    @Test
    void keepsNothingAfterItsEnd() {
        LocalCache other = new LocalCache(SIZE, new LeakCheckingMemory());
        other.close();

        assertThat(insert(other, 1, content(10, 1))).isEqualTo("refused");

        assertThat(find(other, 1)).isEmpty();
        assertThat(other.bytesInUse()).isZero();
    }

    @Test
    @Timeout(60)
    void servesManyThreadsWithoutMixingEntriesUp() throws InterruptedException {
        List<String> errors = new CopyOnWriteArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Random random = new Random(i);
            threads.add(Thread.ofPlatform().start(() -> churn(random, errors)));
        }
        for (Thread thread : threads) {
            thread.join();
        }

        assertThat(errors).isEmpty();
        cache.close();
        assertThat(cache.bytesInUse()).isZero();
    }

    private void churn(Random random, List<String> errors) {
        for (int i = 0; i < 20_000; i++) {
            int key = random.nextInt(40);
            cache.lookup(new CacheKey(key, 0), new Reading(key, errors));
            if (random.nextInt(4) == 0) {
                insert(key, content(1 + key * 20, key));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0", "-1", "1e6", "many"})
    void wantsASize(String size) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalCache.size(Map.of("size", size)))
                .withMessageContaining("cache 'local': size: '" + size + "' (expected: a number of bytes");
    }

    @Test
    void knowsNoOtherSetting() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LocalCache.size(Map.of("size", "10", "host", "x")))
                .withMessage("cache 'local': host: unknown setting (expected: size)");
        assertThatIllegalArgumentException().isThrownBy(() -> LocalCache.size(Map.of()));
    }

    private static MemorySegment content(int size, int fill) {
        return Arena.ofAuto().allocate(size).fill((byte) fill);
    }

    private String insert(long key, MemorySegment content) {
        return insert(cache, key, content);
    }

    private static String insert(LocalCache cache, long key, MemorySegment content) {
        RecordingCacheObserver observer = new RecordingCacheObserver();
        cache.insert(new CacheKey(key, 0), content, observer);
        return observer.word();
    }

    private List<Integer> kept(int... keys) {
        List<Integer> kept = new ArrayList<>();
        for (int key : keys) {
            find(cache, key).ifPresent(entry -> {
                entry.close();
                kept.add(key);
            });
        }
        return kept;
    }

    private CacheEntry lookup(long key) {
        return lookup(cache, key);
    }

    private static CacheEntry lookup(LocalCache cache, long key) {
        return find(cache, key).orElseThrow();
    }

    private static Optional<CacheEntry> find(LocalCache cache, long key) {
        RecordingCacheObserver observer = new RecordingCacheObserver();
        cache.lookup(new CacheKey(key, 0), observer);
        return observer.entry();
    }

    /** Reads an entry and checks whether every byte is that of its key. */
    private record Reading(int key, List<String> mismatches) implements LookupObserver {
        @Override
        public void found(CacheEntry entry) {
            MemorySegment content = entry.content();
            for (long at = 0; at < content.byteSize(); at++) {
                if (content.get(ValueLayout.JAVA_BYTE, at) != (byte) key) {
                    mismatches.add("key " + key + " at " + at);
                }
            }
            entry.close();
        }

        @Override
        public void missing() {}

        @Override
        public void failed(String reason) {
            mismatches.add(reason);
        }
    }
}
