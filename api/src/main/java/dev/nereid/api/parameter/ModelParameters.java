package dev.nereid.api.parameter;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Parameters;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Parameters of a model's configuration, or settings of a backend, which record the names that the backend reads until
 * {@link #endRecording}. Safe for use by any thread.
 */
public final class ModelParameters implements Parameters {
    /** The number of read names that are recorded although the configuration lacks them. */
    private static final int MAX_NAMES = 1_000;

    private final Parameters values;
    private final Set<String> read = ConcurrentHashMap.newKeySet();
    private final Set<String> prefixes = ConcurrentHashMap.newKeySet();
    private volatile boolean isRecording = true;

    private ModelParameters(Parameters values) {
        this.values = values;
    }

    /**
     * Returns parameters of which none was read.
     *
     * @param values the texts by name; copied
     * @return the parameters
     */
    public static ModelParameters of(Map<String, String> values) {
        return new ModelParameters(Parameters.of(values));
    }

    /**
     * Returns parameters, such as settings of a backend, of which none was read.
     *
     * @param values the values, with the words of their errors
     * @return the parameters
     */
    public static ModelParameters of(Parameters values) {
        return new ModelParameters(requireNonNull(values, "values"));
    }

    /**
     * Returns these and more parameters, of which none was read.
     *
     * @param more the texts by name, in place of values of the same name
     * @return the parameters
     */
    public ModelParameters with(Map<String, String> more) {
        Map<String, Object> all = new HashMap<>(values.asMap());
        all.putAll(more);
        return new ModelParameters(Parameters.of(all));
    }

    @Override
    public Optional<Object> value(String name) {
        Optional<Object> value = values.value(requireNonNull(name, "name"));
        if (isRecording && (value.isPresent() || read.size() < MAX_NAMES)) {
            read.add(name);
        }
        return value;
    }

    @Override
    public Map<String, Object> asMap() {
        if (isRecording) {
            prefixes.add("");
        }
        return values.asMap();
    }

    @Override
    public Parameters under(String prefix) {
        if (isRecording && prefixes.size() < MAX_NAMES) {
            prefixes.add(requireNonNull(prefix, "prefix"));
        }
        return values.under(prefix);
    }

    @Override
    public String label(String name) {
        return values.label(name);
    }

    /** Ends the recording: later reads cost nothing. */
    public void endRecording() {
        isRecording = false;
    }

    /**
     * Returns the names in the configuration that were never read.
     *
     * @return the names, sorted
     */
    public List<String> unread() {
        List<String> unread = new ArrayList<>();
        for (String name : new TreeSet<>(values.asMap().keySet())) {
            if (!read.contains(name) && prefixes.stream().noneMatch(name::startsWith)) {
                unread.add(name);
            }
        }
        return unread;
    }

    /**
     * Returns the names that were read and are not in the configuration.
     *
     * @return the names, sorted
     */
    public Set<String> missing() {
        Set<String> missing = new TreeSet<>(read);
        missing.removeAll(values.asMap().keySet());
        return missing;
    }

    /**
     * Returns the names that were read, in the configuration or not.
     *
     * @return names, and beginnings of names, sorted
     */
    public Set<String> read() {
        Set<String> all = new TreeSet<>(read);
        all.addAll(prefixes);
        all.remove("");
        return all;
    }
}
