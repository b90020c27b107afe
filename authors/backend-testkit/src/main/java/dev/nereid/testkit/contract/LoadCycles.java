package dev.nereid.testkit.contract;

import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Model;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Loads a model again and again, and compares what the process holds in between. Confined to the test's thread.
 *
 * <p>The first half warms up: classes, compiled code and pools of the backend appear there. Growth of the second half that
 * may have other causes, such as the compiler of the JVM, is allowed up to limits. Beyond them, further stretches of the
 * same length decide.
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
    private final Supplier<ResourceWatch> watch;
    private final GrowthCheck threads = new GrowthCheck("threads", MAX_THREADS);
    private final GrowthCheck files = new GrowthCheck("open files", MAX_FILES);
    private final GrowthCheck memory = new GrowthCheck("bytes of native memory", MAX_NATIVE_BYTES);
    private final List<WeakReference<Model>> models = new ArrayList<>();

    /**
     * Prepares the cycles.
     *
     * @param example is executed in each cycle
     * @param watch returns what the process holds
     */
    LoadCycles(BackendProvider provider, ContractModel model, ContractExample example, Supplier<ResourceWatch> watch) {
        this.provider = provider;
        this.model = model;
        this.example = example;
        this.watch = watch;
    }

    /**
     * Runs the cycles.
     *
     * @param count how many, at least 2; there are more of them if the growth is doubtful
     * @return the resources that are not checked, since this system does not say how much of them is in use
     * @throws AssertionError if something is left
     */
    List<String> run(int count) {
        int stretch = count / 2;
        cycles(count - stretch);
        measure();
        do {
            cycles(stretch);
            measure();
        } while (checks().noneMatch(GrowthCheck::leaks) && checks().anyMatch(GrowthCheck::isOpen));
        int reachable = reachable();
        if (reachable > MAX_REACHABLE) {
            throw new AssertionError("models reachable after " + models.size() + " loads: " + reachable
                    + " (expected: at most " + MAX_REACHABLE + ")");
        }
        checks().filter(GrowthCheck::leaks).findFirst().ifPresent(leak -> {
            throw new AssertionError(leak.toString());
        });
        return checks().filter(check -> !check.isKnown()).map(GrowthCheck::what).toList();
    }

    private Stream<GrowthCheck> checks() {
        return Stream.of(threads, files, memory);
    }

    private void measure() {
        ResourceWatch now = watch.get();
        threads.add(OptionalLong.of(now.threads()));
        files.add(now.files());
        memory.add(now.nativeBytes());
    }

    private void cycles(int count) {
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
}
