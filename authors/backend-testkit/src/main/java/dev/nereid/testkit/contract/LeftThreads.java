package dev.nereid.testkit.contract;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * Threads that are started while a model is loaded. Immutable.
 *
 * @param before the threads at the beginning
 */
record LeftThreads(Set<Thread> before) {
    private static final long PAUSE_NANOS = 1_000_000;

    /** Threads that the JVM starts when a program first needs them, and keeps. */
    private static final List<String> OF_THE_JVM = List.of(
            "ForkJoinPool",
            "CompletableFutureDelayScheduler",
            "VirtualThread-unparker",
            "Common-Cleaner",
            "Cleaner-",
            "process reaper",
            "Attach Listener",
            "Java2D Disposer",
            "Signal Dispatcher");

    static LeftThreads now() {
        return new LeftThreads(Set.copyOf(Thread.getAllStackTraces().keySet()));
    }

    /**
     * Waits until no thread is left that was started since.
     *
     * @throws AssertionError if one is alive after a time
     */
    void check(Duration timeout) {
        long start = System.nanoTime();
        while (!left().isEmpty()) {
            if (System.nanoTime() - start > timeout.toNanos()) {
                throw new AssertionError("threads alive after Backend.close: " + left() + " (expected: none)");
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    private List<String> left() {
        Set<Thread> now = new HashSet<>(Thread.getAllStackTraces().keySet());
        now.removeAll(before);
        Stream<String> names = now.stream().filter(Thread::isAlive).map(Thread::getName);
        return names.filter(name -> OF_THE_JVM.stream().noneMatch(name::startsWith))
                .toList();
    }
}
