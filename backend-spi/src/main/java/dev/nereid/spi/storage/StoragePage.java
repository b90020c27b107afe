package dev.nereid.spi.storage;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * A part of a listing. Immutable.
 *
 * @param objects the objects of this part; may be empty, even if another part follows
 * @param continuation selects the next part in {@link ModelStorage#list}; empty if this is the last one
 * @since 1.0
 */
public record StoragePage(List<StoredObject> objects, String continuation) {
    /** Copies the components. */
    public StoragePage {
        objects = List.copyOf(objects);
        requireNonNull(continuation, "continuation");
    }

    /**
     * Returns the last part of a listing, or all of it.
     *
     * @param objects the objects
     * @return a page without a continuation
     */
    public static StoragePage last(List<StoredObject> objects) {
        return new StoragePage(objects, "");
    }
}
