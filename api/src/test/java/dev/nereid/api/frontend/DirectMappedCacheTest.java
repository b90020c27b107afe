package dev.nereid.api.frontend;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class DirectMappedCacheTest {
    private final DirectMappedCache<String> cache = new DirectMappedCache<>();

    @Test
    void keepsTheLastEntryOfASlot() {
        assertThat(cache.get(5)).isNull();

        cache.put(5, "five");
        cache.put(6, "six");

        assertThat(cache.get(5)).isEqualTo("five");
        assertThat(cache.get(6)).isEqualTo("six");
        cache.put(5 + 64, "another");
        assertThat(cache.get(5)).isEqualTo("another");
    }

    @Test
    void usesHighBitsOfHashes() {
        cache.put(1 << 16, "high");

        assertThat(cache.get(0)).isNull();
        assertThat(cache.get(1)).isEqualTo("high");
    }

    @Test
    void notesTheLastHashOfASlot() {
        assertThat(cache.repeats(5)).isFalse();
        assertThat(cache.repeats(6)).isFalse();
        assertThat(cache.repeats(5)).isTrue();
        assertThat(cache.repeats(5 + 64)).isFalse();
        assertThat(cache.repeats(5)).isFalse();
    }

    @Test
    void takesNegativeHashes() {
        cache.put(-1, "entry");

        assertThat(cache.get(-1)).isEqualTo("entry");
    }
}
