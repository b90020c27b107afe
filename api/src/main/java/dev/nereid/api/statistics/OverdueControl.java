package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.util.Comparator;
import java.util.OptionalLong;

/**
 * Counts the loads or closes of a model version that take longer than their limit. Immutable.
 *
 * @param model the name of the model
 * @param version the version; empty while the model as a whole is prepared
 * @param kind what takes long
 * @param count the number of steps that take long at this moment
 */
public record OverdueControl(String model, OptionalLong version, Kind kind, long count) {
    /** The order by model, version and kind. */
    public static final Comparator<OverdueControl> ORDER = Comparator.comparing(OverdueControl::model)
            .thenComparingLong(control -> control.version().orElse(0))
            .thenComparing(OverdueControl::kind);

    /** The step in the life of a model version. */
    public enum Kind {
        /** It is loaded. */
        LOAD,
        /** It is closed: the model or its instances. */
        CLOSE
    }

    /** Checks the components. */
    public OverdueControl {
        requireNonNull(model, "model");
        requireNonNull(version, "version");
        requireNonNull(kind, "kind");
    }

    /**
     * Returns the same with another count.
     *
     * @param changed the number of steps
     * @return the changed figures
     */
    public OverdueControl withCount(long changed) {
        return new OverdueControl(model, version, kind, changed);
    }
}
