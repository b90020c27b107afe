package dev.nereid.scheduler.admission;

/**
 * Limits on requests and bytes in flight. Immutable.
 *
 * @param requests the maximum number of requests; 0 for no limit
 * @param bytes the maximum number of bytes of their inputs; 0 for no limit
 */
public record AdmissionLimits(long requests, long bytes) {
    public static final AdmissionLimits NONE = new AdmissionLimits(0, 0);

    public AdmissionLimits {
        if (requests < 0 || bytes < 0) {
            throw new IllegalArgumentException(
                    "limits: " + requests + " requests, " + bytes + " bytes (expected: each 0 or more)");
        }
    }
}
