package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

/**
 * Counts the responses of other models that a model version holds. Immutable.
 *
 * @param holder the model version that holds them
 * @param open the responses that it has not closed at this moment
 */
public record HeldResponses(ModelVersionTags holder, long open) {
    /** Checks the components. */
    public HeldResponses {
        requireNonNull(holder, "holder");
    }

    /**
     * Adds the responses of another load of the same version.
     *
     * @param other the responses of the other load
     * @return the responses of both
     */
    public HeldResponses plus(HeldResponses other) {
        return new HeldResponses(holder, open + other.open);
    }
}
