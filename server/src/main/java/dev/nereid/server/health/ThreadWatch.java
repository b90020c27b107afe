package dev.nereid.server.health;

import dev.nereid.api.ThreadStack;
import dev.nereid.plugin.jar.PluginClassLoader;
import dev.nereid.scheduler.time.Watchdog;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports plugins that start ever more threads. Confined to the thread of the watchdog.
 *
 * <p>A thread belongs to the plugin of its context class loader. A new thread inherits this class loader from the
 * thread that starts it. Threads are listed only if the process has many, and reported when the threads of one plugin
 * have doubled since the last report. The class loader of the plugin keeps their number, by which its models are ready
 * or not.
 */
public final class ThreadWatch implements Watchdog.Watched {
    /** The number of threads of the process from which on they are listed. */
    static final int MIN_THREADS = 256;

    /** The number of threads of one plugin that are reported. */
    static final int MIN_OF_PLUGIN = 128;

    /** The prefixes of the names of threads that are the server's while they execute code of a plugin. */
    private static final List<String> OF_SERVER = List.of("instance/", "executor/");

    /** The checks that are left out, so that the start does not wait for the bean. */
    private static final int SKIPPED_CHECKS = 5;

    private static final Logger LOG = LoggerFactory.getLogger(ThreadWatch.class);

    /** The platform threads of the process. */
    interface Threads {
        /** Returns how many there are. */
        int count();

        /** Lists them, and perhaps some that have ended. */
        Stream<Thread> all();
    }

    /** A plugin with many threads, by its class loader. */
    record Leak(PluginClassLoader plugin, List<Thread> threads) {}

    private final Threads threads;
    private final int pluginLimit;
    private int checks;

    /** The number of threads of one plugin from which on it is reported again. */
    private int limit = MIN_OF_PLUGIN;

    private Set<PluginClassLoader> counted = Set.of();

    /**
     * Watches the threads of the process.
     *
     * @param pluginLimit the number of threads of a plugin from which on its models are not ready; 0 for none
     */
    public ThreadWatch(int pluginLimit) {
        this(pluginLimit, new Threads() {
            @Override
            public int count() {
                return ManagementFactory.getThreadMXBean().getThreadCount();
            }

            @Override
            public Stream<Thread> all() {
                ThreadGroup root = Thread.currentThread().getThreadGroup();
                while (root.getParent() != null) {
                    root = root.getParent();
                }
                Thread[] found = new Thread[2 * root.activeCount() + MIN_THREADS];
                return Stream.of(found).limit(root.enumerate(found, true));
            }
        });
    }

    ThreadWatch(int pluginLimit, Threads threads) {
        this.pluginLimit = pluginLimit;
        this.threads = threads;
    }

    @Override
    public void check(long nowNanos) {
        if (checks < SKIPPED_CHECKS) {
            checks++;
            return;
        }
        scan().ifPresent(ThreadWatch::report);
    }

    /** Counts the threads. Returns the plugin that has the most, if they have become many, until they double. */
    Optional<Leak> scan() {
        int count = threads.count();
        if (count < smallest()) {
            count(Map.of());
            limit = MIN_OF_PLUGIN;
            return Optional.empty();
        }
        Map<PluginClassLoader, List<Thread>> ofPlugins = ofPlugins();
        count(ofPlugins);
        Optional<Leak> most = ofPlugins.entrySet().stream()
                .max((first, second) -> Integer.compare(
                        first.getValue().size(), second.getValue().size()))
                .map(plugin -> new Leak(plugin.getKey(), plugin.getValue()));
        int largest = most.map(leak -> leak.threads().size()).orElse(0);
        if (largest < MIN_OF_PLUGIN) {
            limit = MIN_OF_PLUGIN;
        }
        if (count < MIN_THREADS || largest < limit) {
            return Optional.empty();
        }
        limit = 2 * largest;
        return most;
    }

    private Map<PluginClassLoader, List<Thread>> ofPlugins() {
        Map<PluginClassLoader, List<Thread>> ofPlugins = new HashMap<>();
        threads.all()
                .filter(thread -> OF_SERVER.stream().noneMatch(thread.getName()::startsWith))
                .forEach(thread -> {
                    if (thread.getContextClassLoader()
                            instanceof PluginClassLoader plugin) { // read once: executions change it
                        ofPlugins
                                .computeIfAbsent(plugin, _ -> new ArrayList<>())
                                .add(thread);
                    }
                });
        return ofPlugins;
    }

    /** Returns the minimum number of threads of the process at which the threads of plugins are counted. */
    private int smallest() {
        return pluginLimit == 0 ? MIN_THREADS : Math.min(MIN_THREADS, pluginLimit);
    }

    private void count(Map<PluginClassLoader, List<Thread>> ofPlugins) {
        for (PluginClassLoader before : counted) {
            if (!ofPlugins.containsKey(before)) {
                before.threads(0, pluginLimit);
            }
        }
        ofPlugins.forEach((plugin, started) -> plugin.threads(started.size(), pluginLimit));
        counted = Set.copyOf(ofPlugins.keySet());
    }

    private static void report(Leak leak) {
        Thread newest = leak.threads().getLast();
        LOG.atWarn()
                .addKeyValue("loader", leak.plugin().getName())
                .addKeyValue("threads", leak.threads().size())
                .setCause(ThreadStack.of(newest, newest.getStackTrace()))
                .log(
                        "plugin has started many threads (expected: that it ends those it needs no more); one of them follows ({}, {} threads)",
                        leak.plugin().getName(),
                        leak.threads().size());
    }
}
