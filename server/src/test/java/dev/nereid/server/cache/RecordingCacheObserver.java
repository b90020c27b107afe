package dev.nereid.server.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Takes note of what a cache says. Confined to one thread. */
final class RecordingCacheObserver implements LookupObserver, InsertObserver {
    private final List<String> words = new ArrayList<>();
    private final List<CacheEntry> entries = new ArrayList<>();

    /** Returns what was said; fails unless that is one word. */
    String word() {
        assertThat(words).hasSize(1);
        return words.getFirst();
    }

    /** Returns the entry that was found, to be closed by the caller; fails unless one word was said. */
    Optional<CacheEntry> entry() {
        word();
        return entries.stream().findFirst();
    }

    @Override
    public void found(CacheEntry entry) {
        words.add("found");
        entries.add(entry);
    }

    @Override
    public void missing() {
        words.add("missing");
    }

    @Override
    public void stored() {
        words.add("stored");
    }

    @Override
    public void exists() {
        words.add("exists");
    }

    @Override
    public void refused() {
        words.add("refused");
    }

    @Override
    public void failed(String reason) {
        words.add(reason);
    }
}
