package dev.nereid.repository.storage;

import java.time.Duration;

/**
 * Limits of remote model repositories. Immutable.
 *
 * @param objects the number of objects in a repository
 * @param filesPerModel the number of files and directories of a model
 * @param bytesPerModel the size of a model
 * @param freeBytes the bytes that a copy has to leave free on the disk
 * @param downloads the number of models that are copied at once, from one repository
 * @param timePerObject how long an object may take, whatever its size
 * @param bytesPerSecond the rate at which objects have to arrive beyond that
 */
public record StorageLimits(
        int objects,
        int filesPerModel,
        long bytesPerModel,
        long freeBytes,
        int downloads,
        Duration timePerObject,
        long bytesPerSecond) {
    /** The limits of the command line. */
    public static final StorageLimits DEFAULT =
            new StorageLimits(1_000_000, 10_000, 1L << 40, 256L << 20, 4, Duration.ofMinutes(1), 64L << 10);

    public StorageLimits {
        requirePositive("objects", objects);
        requirePositive("filesPerModel", filesPerModel);
        requirePositive("bytesPerModel", bytesPerModel);
        requirePositive("downloads", downloads);
        requirePositive("bytesPerSecond", bytesPerSecond);
        if (freeBytes < 0) {
            throw new IllegalArgumentException("freeBytes: " + freeBytes + " (expected: >= 0)");
        }
        if (!timePerObject.isPositive()) {
            throw new IllegalArgumentException("timePerObject: " + timePerObject + " (expected: > 0)");
        }
    }

    /** Returns how many nanoseconds an object may take. */
    long nanos(long bytes) {
        return timePerObject.toNanos()
                + Duration.ofSeconds(bytes / bytesPerSecond).toNanos();
    }

    private static void requirePositive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + ": " + value + " (expected: >= 1)");
        }
    }
}
