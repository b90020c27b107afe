package dev.nereid.server.plugin;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Watches the class loaders of test plugins, which register themselves. Confined to the test's thread. */
public final class UnloadWatch implements AutoCloseable {
    /** A statement of a plugin that registers its class loader. */
    public static final String REGISTRATION = "if (System.getProperties().get(\"nereid.test.loaders\")"
            + " instanceof java.util.Queue<?> queue) { @SuppressWarnings(\"unchecked\") var loaders ="
            + " (java.util.Queue<Object>) queue;"
            + " loaders.add(new java.lang.ref.WeakReference<>(getClass().getClassLoader())); }";

    private static final String PROPERTY = "nereid.test.loaders";

    /** Full collections until a loader counts as held. */
    private static final int TRIES = 20;

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

    /** Returns whether no class loader stays reachable. Threads that have just ended may hold one a moment longer. */
    public boolean awaitUnloaded() {
        for (int i = 0; i < TRIES && loaded() > 0; i++) {
            Thread.onSpinWait();
        }
        return reachable.isEmpty();
    }

    @Override
    public void close() {
        System.getProperties().remove(PROPERTY);
    }
}
