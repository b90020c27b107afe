package dev.nereid.plugin.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Records the notifications of a cache. Confined to one thread. */
final class RecordingCacheObserver implements LookupObserver, InsertObserver {
    private final List<String> words = new ArrayList<>();
    private final List<CacheEntry> entries = new ArrayList<>();

    /** Returns the notification; fails unless there is exactly one. */
    String word() {
        assertThat(words).hasSize(1);
        return words.getFirst();
    }

    /** Returns the found entry, to be closed by the caller; fails unless there is exactly one notification. */
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
