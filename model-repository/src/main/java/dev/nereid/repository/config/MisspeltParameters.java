package dev.nereid.repository.config;

import dev.nereid.api.Spelling;
import dev.nereid.api.parameter.ModelParameters;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Finds parameters of a model that are probably misspelt. Static functions only. */
public final class MisspeltParameters {
    /** The parameter of a model that is never evicted. */
    public static final String PINNED = "nereid.pinned";

    /** The parameter of a model with the limit of its executions, in seconds. */
    public static final String EXECUTION_LIMIT = "execution_watchdog_secs";

    /** Parameters that the server reads, whatever the backend. */
    private static final Set<String> GENERAL =
            Set.of(EXECUTION_LIMIT, BatchingStrategyFactory.NATIVE_PARAMETER, PINNED);

    /** The beginning of names of the reference server. */
    private static final String RESERVED = "TRITON_";

    private MisspeltParameters() {}

    /**
     * Describes configured parameters that were never read, though their names resemble read ones.
     *
     * @param parameters the parameters of a model, with the names that were read
     * @return a warning for each, by their names
     */
    public static List<String> of(ModelParameters parameters) {
        Set<String> known = new TreeSet<>(parameters.read());
        known.addAll(GENERAL);
        return resembling(parameters, known);
    }

    /**
     * Describes configured parameters that resemble names that were read and are missing. The load has failed, so that
     * others may not have been read yet.
     *
     * @param parameters the parameters of a model, with the names that were read
     * @return a warning for each, by their names
     */
    public static List<String> ofFailure(ModelParameters parameters) {
        return resembling(parameters, parameters.missing());
    }

    private static List<String> resembling(ModelParameters parameters, Set<String> known) {
        List<String> warnings = new ArrayList<>();
        for (String name : parameters.unread()) {
            if (!GENERAL.contains(name) && !name.startsWith(RESERVED)) {
                Spelling.closest(name, known)
                        .ifPresent(meant -> warnings.add(
                                "unknown parameter '" + name + "' has no effect; did you mean '" + meant + "'?"));
            }
        }
        return warnings;
    }
}
