package dev.nereid.plugin;

import dev.nereid.api.Spelling;
import dev.nereid.api.parameter.ModelParameters;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Finds settings of a backend that are probably misspelt. Static functions only. */
final class MisspeltSettings {
    /** The setting that the server gives to every backend, whether it reads it or not. */
    static final String MAX_BATCH_SIZE = "default-max-batch-size";

    private MisspeltSettings() {}

    /**
     * Describes settings of a backend that were never read, though their names resemble read ones.
     *
     * @param settings the settings of the backend, with the names that were read
     * @param own the names of settings for this backend; other settings are for all backends, which need not read them
     * @return a warning for each, by their names
     */
    static List<String> of(ModelParameters settings, Set<String> own) {
        Set<String> known = new TreeSet<>(settings.read());
        known.add(MAX_BATCH_SIZE);
        List<String> warnings = new ArrayList<>();
        for (String name : settings.unread()) {
            if (own.contains(name) && !known.contains(name)) {
                Spelling.closest(name, known)
                        .ifPresent(meant -> warnings.add(settings.label(name)
                                + ": unknown setting has no effect; did you mean '" + meant + "'?"));
            }
        }
        return warnings;
    }
}
