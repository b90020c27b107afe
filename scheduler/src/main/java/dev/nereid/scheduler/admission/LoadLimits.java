package dev.nereid.scheduler.admission;

/**
 * Limits on requests and bytes in flight. Immutable.
 *
 * @param requests the most calls; 0 for any number
 * @param bytes the most bytes of their inputs; 0 for any number
 */
public record LoadLimits(long requests, long bytes) {
    /** Any load. */
    public static final LoadLimits NONE = new LoadLimits(0, 0);

    /** Checks the components. */
    public LoadLimits {
        if (requests < 0 || bytes < 0) {
            throw new IllegalArgumentException(
                    "limits: " + requests + " requests, " + bytes + " bytes (expected: each 0 or more)");
        }
    }
}
