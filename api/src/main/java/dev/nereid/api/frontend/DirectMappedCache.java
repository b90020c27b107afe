package dev.nereid.api.frontend;

import org.jspecify.annotations.Nullable;

/**
 * Cache of {@value #SLOTS} values, one for each slot that hashes map to. Confined to one thread.
 *
 * <p>A value stays until another one takes its slot. Values with different hashes share slots, and so do values with
 * equal ones: an entry holds its key, and the caller compares it.
 *
 * @param <V> the entries
 */
public final class DirectMappedCache<V> {
    /** A power of two. */
    private static final int SLOTS = 64;

    private final @Nullable Object[] entries = new Object[SLOTS];
    private final int[] lastHashes = new int[SLOTS];

    /** Creates an empty cache. */
    public DirectMappedCache() {}

    /**
     * Returns the entry in the slot of a hash. {@code null} rather than an empty {@link java.util.Optional}, since this
     * is the hot path.
     *
     * @param hash the hash of a key
     * @return an entry, of this key or of another one; {@code null} if there is none
     */
    @SuppressWarnings("unchecked") // only put stores entries
    public @Nullable V get(int hash) {
        return (V) entries[slot(hash)];
    }

    /**
     * Puts an entry into the slot of a hash, in place of the one before.
     *
     * @param hash the hash of the entry's key
     * @param entry the entry
     */
    public void put(int hash, V entry) {
        entries[slot(hash)] = entry;
    }

    /**
     * Notes a hash as the last one of its slot. Callers that cache only keys that come twice in a row put an entry when
     * this returns {@code true}: a key that comes once is not worth the slot.
     *
     * @param hash the hash of a key
     * @return whether it was the last one already; {@code true} as well for the hash 0 in an unused slot
     */
    public boolean repeats(int hash) {
        int slot = slot(hash);
        boolean repeated = lastHashes[slot] == hash;
        lastHashes[slot] = hash;
        return repeated;
    }

    private static int slot(int hash) {
        return (hash ^ hash >>> 16) & SLOTS - 1;
    }
}
