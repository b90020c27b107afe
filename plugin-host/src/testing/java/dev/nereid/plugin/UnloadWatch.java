package dev.nereid.plugin;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Watches the class loaders of test plugins, which register themselves. Confined to the test's thread. */
public final class UnloadWatch implements AutoCloseable {
    /** A statement of a plugin that registers its class loader. */
    public static final String REGISTRATION = "if (System.getProperties().get(\"nereid.test.loaders\")"
            + " instanceof java.util.Queue<?> queue) { @SuppressWarnings(\"unchecked\") var loaders ="
            + " (java.util.Queue<Object>) queue;"
            + " loaders.add(new java.lang.ref.WeakReference<>(getClass().getClassLoader())); }";

    private static final String PROPERTY = "nereid.test.loaders";

    /** How long a loader may stay reachable: a compiler thread holds those of the methods it compiles. */
    private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(30);

    private static final long CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Queue<WeakReference<ClassLoader>> registered = new ConcurrentLinkedQueue<>();
    private final List<WeakReference<ClassLoader>> reachable = new ArrayList<>();

    public UnloadWatch() {
        System.getProperties().put(PROPERTY, registered);
    }

    /** Returns how many class loaders are reachable, after a full collection of garbage. */
    public int loaded() {
        for (WeakReference<ClassLoader> one = registered.poll(); one != null; one = registered.poll()) {
            reachable.add(one);
        }
        System.gc();
        reachable.removeIf(one -> one.refersTo(null));
        return reachable.size();
    }

    /**
     * Returns whether no class loader stays reachable. Threads that have just ended, and compilations under way, may
     * hold one a moment longer.
     */
    public boolean awaitUnloaded() {
        long start = System.nanoTime();
        while (loaded() > 0) {
            if (System.nanoTime() - start > LIMIT_NANOS) {
                return false;
            }
            LockSupport.parkNanos(CHECK_NANOS);
        }
        return true;
    }

    @Override
    public void close() {
        System.getProperties().remove(PROPERTY);
    }
}
