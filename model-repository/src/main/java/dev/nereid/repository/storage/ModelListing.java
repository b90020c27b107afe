package dev.nereid.repository.storage;

import dev.nereid.spi.storage.StoredObject;
import java.util.List;
import java.util.SequencedSet;
import java.util.TreeSet;

/**
 * The objects of one model, with checked keys. Immutable.
 *
 * @param model the name of the model, with which all keys begin
 * @param directories the keys of all directories without a slash at their ends, each after the one that contains it
 * @param fingerprint identifies names and contents
 */
record ModelListing(
        String model, List<StoredObject> files, SequencedSet<String> directories, long bytes, String fingerprint) {
    ModelListing {
        files = List.copyOf(files);
        directories = new TreeSet<>(directories);
    }
}
