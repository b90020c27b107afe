package dev.nereid.server;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

/** Reads the allocations of threads from the management bean of HotSpot. Static functions only. */
final class ThreadAllocations {
    private ThreadAllocations() {}

    /** Returns how many bytes each platform thread has allocated; empty if the JVM does not count them. */
    static Map<Thread, Long> read() {
        if (!(ManagementFactory.getThreadMXBean() instanceof ThreadMXBean bean)
                || !bean.isThreadAllocatedMemorySupported()) {
            return Map.of();
        }
        Map<Thread, Long> all = new HashMap<>();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            long bytes = bean.getThreadAllocatedBytes(thread.threadId());
            if (bytes >= 0) { // it has not ended
                all.put(thread, bytes);
            }
        }
        return all;
    }
}
