package dev.nereid.plugin.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.cache.CacheKey;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Checks that the cache behaves as a list. Used entries move to the end, and entries are evicted from the front. */
final class LocalCacheProperties {
    private static final int UNIT = 64;

    /** A model of the cache, without threads and without memory. */
    private static final class Model {
        private final SequencedSet<Integer> keys = new LinkedHashSet<>();
        private final Map<Integer, Integer> units = new HashMap<>();
        private final int maxUnits;

        Model(int maximum) {
            this.maxUnits = maximum;
        }

        String insert(int key, int size) {
            if (size > maxUnits) {
                return "refused";
            }
            if (keys.contains(key)) {
                return "exists";
            }
            while (units() + size > maxUnits) {
                units.remove(keys.removeFirst());
            }
            keys.add(key);
            units.put(key, size);
            return "stored";
        }

        boolean lookup(int key) {
            boolean found = keys.remove(key);
            if (found) {
                keys.add(key);
            }
            return found;
        }

        int units() {
            return units.values().stream().mapToInt(Integer::intValue).sum();
        }
    }

    private static byte[] content(int size, int key) {
        byte[] content = new byte[size];
        Arrays.fill(content, (byte) key);
        return content;
    }

    @Property(tries = 500)
    void evictsTheLeastRecentlyUsedEntry(
            @ForAll @IntRange(min = 1, max = 20) int maximum,
            @ForAll @Size(max = 200) List<@IntRange(max = 40 * 22 - 1) Integer> steps) {
        Model model = new Model(maximum);
        LocalCache cache = new LocalCache((long) maximum * UNIT, new LeakCheckingMemory());
        for (int step : steps) {
            int key = step % 20;
            int units = step / 40; // 0 to 21: the latter never fits
            RecordingCacheObserver observer = new RecordingCacheObserver();
            if (step / 20 % 2 == 0) {
                cache.lookup(new CacheKey(key, 0), observer);
                assertThat(observer.word()).isEqualTo(model.lookup(key) ? "found" : "missing");
                observer.entry().ifPresent(entry -> {
                    byte[] content = entry.content().toArray(ValueLayout.JAVA_BYTE);
                    assertThat(content).isEqualTo(content(content.length, key));
                    entry.close();
                });
            } else {
                byte[] content = content(Math.max(0, units * UNIT - key), key); // a little less counts as much
                cache.insert(new CacheKey(key, 0), MemorySegment.ofArray(content), observer);
                assertThat(observer.word()).isEqualTo(model.insert(key, Math.max(1, units)));
            }
            assertThat(cache.bytesInUse()).isLessThanOrEqualTo((long) model.units() * UNIT);
        }
        cache.close();
        assertThat(cache.bytesInUse()).isZero();
    }
}
