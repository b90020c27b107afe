package dev.nereid.distribution;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** How many files and connections the process may have open. Immutable. */
final class FileDescriptors {
    private FileDescriptors() {}

    /** Returns the limit of the operating system, or a large number where there is none. */
    static long limit() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
                ? system.getMaxFileDescriptorCount()
                : Integer.MAX_VALUE;
    }
}
