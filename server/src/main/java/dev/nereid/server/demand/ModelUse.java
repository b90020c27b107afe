package dev.nereid.server.demand;

/**
 * How a loaded model is used at a moment. Immutable.
 *
 * @param usedNanos when it was last used, on the scale of {@link System#nanoTime()}
 */
public record ModelUse(String key, long usedNanos, boolean isIdle) {
    /**
     * Adds the use of another generation of the same model.
     *
     * @return the later of the two; idle if both are
     */
    public ModelUse with(ModelUse other) {
        return new ModelUse(
                key, usedNanos - other.usedNanos() > 0 ? usedNanos : other.usedNanos(), isIdle && other.isIdle());
    }
}
