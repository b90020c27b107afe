package dev.nereid.scheduler;

/**
 * How much may be in flight at a time: taken, and not yet answered with all memory given back. Immutable.
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
