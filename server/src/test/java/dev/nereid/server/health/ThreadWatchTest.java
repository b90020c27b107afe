package dev.nereid.server.health;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.plugin.jar.PluginClassLoader;
import dev.nereid.plugin.jar.PluginSource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests which plugins are reported for their threads. */
final class ThreadWatchTest {
    private static final int LIMIT = 200;

    @AutoClose
    private final PluginClassLoader one = loader("one");

    @AutoClose
    private final PluginClassLoader other = loader("other");

    private final List<Thread> threads = new ArrayList<>();
    private final ThreadWatch watch = new ThreadWatch(LIMIT, new ThreadWatch.Threads() {
        @Override
        public int count() {
            return threads.size();
        }

        @Override
        public Stream<Thread> all() {
            return threads.stream();
        }
    });

    @Test
    void reportsThePluginWithTheMostThreadsOnceUntilTheyDouble() {
        add(one, 100);
        add(other, ThreadWatch.MIN_THREADS - 101);
        assertThat(watch.scan()).isEmpty();

        add(other, 1);

        ThreadWatch.Leak leak = watch.scan().orElseThrow();
        assertThat(leak.plugin()).isSameAs(other);
        assertThat(leak.threads()).hasSize(ThreadWatch.MIN_THREADS - 100);
        add(other, leak.threads().size() - 1);
        assertThat(watch.scan()).isEmpty();
        add(other, 1);
        assertThat(watch.scan()).isPresent();
    }

    @Test
    void reportsAPluginOfAServerThatHasManyThreadsItself() {
        add(ThreadWatch.class.getClassLoader(), 2 * ThreadWatch.MIN_THREADS);
        assertThat(watch.scan()).isEmpty();

        add(one, ThreadWatch.MIN_OF_PLUGIN);

        assertThat(watch.scan()).isPresent();
    }

    @Test
    void reportsAnotherLeakAfterTheFirstHasEnded() {
        add(one, ThreadWatch.MIN_THREADS);
        assertThat(watch.scan()).isPresent();
        threads.clear();
        assertThat(watch.scan()).isEmpty();

        add(one, ThreadWatch.MIN_THREADS);

        assertThat(watch.scan()).isPresent();
    }

    /** Threads of instances have the class loader of the plugin while they execute its code. */
    @Test
    void countsNoThreadsOfInstances() {
        add(one, 2 * ThreadWatch.MIN_THREADS);
        threads.forEach(thread -> thread.setName("instance/m/1/m_0"));

        assertThat(watch.scan()).isEmpty();
        assertThat(one.threads()).isZero();
    }

    @Test
    void aPluginHasTooManyThreadsUntilItHasEndedEnoughOfThem() {
        add(one, LIMIT - 1);
        add(ThreadWatch.class.getClassLoader(), 2 * LIMIT);
        watch.scan();
        assertThat(one.threads()).isEqualTo(LIMIT - 1);
        assertThat(one.hasTooManyThreads()).isFalse();

        add(one, 1);
        watch.scan();
        assertThat(one.threads()).isEqualTo(LIMIT);
        assertThat(one.hasTooManyThreads()).isTrue();
        assertThat(other.hasTooManyThreads()).isFalse();

        threads.removeLast();
        watch.scan();
        assertThat(one.hasTooManyThreads()).isFalse();

        threads.clear();
        watch.scan();
        assertThat(one.threads()).isZero();
    }

    @Test
    void aServerWithoutALimitHasNoPluginWithTooManyThreads() {
        ThreadWatch unlimited = new ThreadWatch(0, new ThreadWatch.Threads() {
            @Override
            public int count() {
                return threads.size();
            }

            @Override
            public Stream<Thread> all() {
                return threads.stream();
            }
        });
        add(one, 10 * LIMIT);

        assertThat(unlimited.scan()).isPresent();
        assertThat(one.threads()).isEqualTo(10 * LIMIT);
        assertThat(one.hasTooManyThreads()).isFalse();
    }

    @Test
    void reportsNoThreadsOfTheServer() {
        add(ThreadWatch.class.getClassLoader(), 10 * ThreadWatch.MIN_THREADS);
        add(one, ThreadWatch.MIN_OF_PLUGIN - 1);

        assertThat(watch.scan()).isEmpty();
    }

    private void add(ClassLoader loader, int count) {
        for (int i = 0; i < count; i++) {
            Thread thread = Thread.ofPlatform().unstarted(() -> {});
            thread.setContextClassLoader(loader);
            threads.add(thread);
        }
    }

    private static PluginClassLoader loader(String plugin) {
        return new PluginClassLoader(
                new PluginSource(plugin, Path.of("plugins"), List.of()), ThreadWatchTest.class.getClassLoader());
    }
}
