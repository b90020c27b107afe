package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Model;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/**
 * Loads a model again and again, and compares what the process holds in the middle and at the end. Confined to the
 * test's thread.
 *
 * <p>The first half warms up: classes, compiled code and pools of the backend appear there. Growth of the second half that
 * may have other causes, such as the compiler of the JVM, is allowed up to limits.
 */
final class LoadCycles {
    /** Models that local variables and the stack may still refer to. */
    private static final int MAX_REACHABLE = 2;

    private static final int MAX_THREADS = 8;
    private static final int MAX_FILES = 8;
    private static final long MAX_NATIVE_BYTES = 16L << 20;
    private static final int COLLECTIONS = 10;

    private final BackendProvider provider;
    private final ContractModel model;
    private final ContractExample example;
    private final List<WeakReference<Model>> models = new ArrayList<>();

    LoadCycles(BackendProvider provider, ContractModel model, ContractExample example) {
        this.provider = provider;
        this.model = model;
        this.example = example;
    }

    /**
     * Runs the cycles.
     *
     * @param count how many, at least 2
     * @throws AssertionError if something is left of them
     */
    void run(int count) throws BackendException {
        cycles(count / 2);
        ResourceWatch middle = ResourceWatch.now();
        cycles(count - count / 2);
        ResourceWatch end = ResourceWatch.now();
        check("models reachable", reachable(), MAX_REACHABLE, count);
        check("more threads", end.threads() - middle.threads(), MAX_THREADS, count);
        check("more open files", end.files() - middle.files(), MAX_FILES, count);
        check("more bytes of native memory", end.nativeBytes() - middle.nativeBytes(), MAX_NATIVE_BYTES, count);
    }

    private void cycles(int count) throws BackendException {
        for (int i = 0; i < count; i++) {
            try (LocalModel local = LocalModel.load(provider, model)) {
                models.add(new WeakReference<>(local.model()));
                ContractChecks.check(example, local.infer(example));
            }
        }
    }

    private int reachable() {
        for (int i = 0; i < COLLECTIONS && countReachable() > MAX_REACHABLE; i++) {
            System.gc();
        }
        return countReachable();
    }

    /** Counts different models: a backend may return the same one for every load. */
    private int countReachable() {
        Set<Model> different = Collections.newSetFromMap(new IdentityHashMap<>());
        for (WeakReference<Model> reference : models) {
            Model reachable = reference.get();
            if (reachable != null) {
                different.add(reachable);
            }
        }
        return different.size();
    }

    private static void check(String what, long value, long limit, int loads) {
        if (value > limit) {
            throw new AssertionError(
                    what + " after " + loads + " loads: " + value + " (expected: at most " + limit + ")");
        }
    }
}
