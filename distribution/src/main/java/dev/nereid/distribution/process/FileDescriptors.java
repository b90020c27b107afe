package dev.nereid.distribution.process;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** Reads the limit of open file descriptors of the process. Immutable. */
public final class FileDescriptors {
    private FileDescriptors() {}

    /** Returns the limit of the operating system, or a large number where there is none. */
    public static long limit() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean system
                ? system.getMaxFileDescriptorCount()
                : Integer.MAX_VALUE;
    }
}
