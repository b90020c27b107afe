package dev.nereid.server.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class BackendSlotTest {
    @TempDir
    private Path root;

    @Test
    void createsOneBackendForConcurrentCallers() throws Exception {
        CountDownLatch making = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(3);
        CountingProvider provider = new CountingProvider(context -> {
            making.await();
            return new CountingBackend();
        });
        BackendSlot slot = slot(provider);
        Set<Backend> got = new HashSet<>();

        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<Backend>> futures = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                futures.add(threads.submit(() -> {
                    asked.countDown();
                    return slot.backend();
                }));
            }
            asked.await();
            making.countDown();
            for (Future<Backend> future : futures) {
                got.add(future.get());
            }
        }

        assertThat(got).hasSize(1);
        assertThat(provider.created).hasValue(1);
    }

    @Test
    void triesAgainAfterAFailure() throws BackendException {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend());
        provider.failures.set(1);
        BackendSlot slot = slot(provider);

        assertThatThrownBy(slot::backend)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("not yet");
        assertThat(slot.backend()).isSameAs(slot.backend());
        assertThat(provider.created).hasValue(1);
    }

    @Test
    void convertsAnyThrowableOfAPluginToAnInternalError() {
        BackendSlot slot = slot(new CountingProvider(context -> {
            throw new NoClassDefFoundError("com/example/Driver");
        }));

        assertThatThrownBy(slot::backend)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                .hasMessage("plugin 'test': BackendProvider.create failed:"
                        + " java.lang.NoClassDefFoundError: com/example/Driver");
    }

    @Test
    void closesABackendWhoseTraitsFail() {
        AtomicInteger closed = new AtomicInteger();
        BackendSlot slot = slot(new CountingProvider(context -> new Backend() {
            @Override
            public BackendTraits traits() {
                throw new IllegalStateException("no traits");
            }

            @Override
            public Model load(ModelContext model) {
                throw new IllegalStateException("not reached");
            }

            @Override
            public void close() {
                closed.incrementAndGet();
            }
        }));

        assertThatThrownBy(slot::backend).hasMessageContaining("no traits");
        assertThat(closed).hasValue(1);
    }

    @Test
    void doesNotMakeABackendThatIsUnavailable() {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend());
        provider.unavailable = "no driver";
        BackendSlot slot = slot(provider);

        assertThatThrownBy(slot::backend).hasMessage("backend 'counting' is not available: no driver");
        assertThat(slot.status())
                .isEqualTo(new BackendStatus("counting", "test", BackendStatus.State.UNAVAILABLE, "no driver"));
        assertThat(provider.created).hasValue(0);
    }

    @Test
    void closesTheBackendOnce() throws BackendException {
        CountingBackend backend = new CountingBackend();
        BackendSlot slot = slot(new CountingProvider(context -> backend));

        slot.close();
        slot.backend();
        slot.close();
        slot.close();

        assertThat(backend.closed).hasValue(1);
    }

    @Test
    void givesSettingsCacheAndProcessorsToTheBackend() throws Exception {
        Path jar = PluginJar.of("class Any { }").write(root.resolve("test/any.jar"));
        List<BackendContext> seen = new ArrayList<>();
        CountingProvider provider = new CountingProvider(context -> {
            seen.add(context);
            return new CountingBackend();
        });
        BackendSlot slot = slot(provider, jar);
        slot.backend();
        BackendContext context = seen.getFirst();

        assertThat(context.settings()).isEqualTo(Map.of("shared", "all", "both", "own", "default-max-batch-size", "4"));
        assertThat(context.processors()).isEqualTo(3);
        assertThat(context.pluginDirectory()).isEqualTo(root.resolve("test"));
        assertThat(context.logger().getName()).isEqualTo("nereid.backend.counting");
        Path cache = context.cacheDirectory();
        assertThat(cache).isDirectory().hasParent(root.resolve("cache")).isEqualTo(context.cacheDirectory());

        PluginJar.of("class Other { }").write(jar);
        assertThat(context.cacheDirectory()).isNotEqualTo(cache);
        assertThat(root.resolve("cache").toFile().list()).hasSize(2);
    }

    private BackendSlot slot(BackendProvider provider, Path... jars) {
        try {
            PluginBoundary boundary = new PluginBoundary("test", getClass().getClassLoader());
            PluginEnvironment environment = new PluginEnvironment(
                    new SpiVersion(1, 0),
                    Map.of("", Map.of("shared", "all", "both", "all"), "counting", Map.of("both", "own")),
                    root.resolve("cache"),
                    3);
            return new BackendSlot(
                    IsolatedBackendProvider.of(provider, boundary),
                    new PluginSource("test", root.resolve("test"), List.of(jars)),
                    environment);
        } catch (BackendException | PluginException e) {
            throw new AssertionError(e);
        }
    }

    private interface Making {
        Backend make(BackendContext context) throws Exception;
    }

    private static final class CountingProvider implements BackendProvider {
        final AtomicInteger created = new AtomicInteger();
        final AtomicInteger failures = new AtomicInteger();
        String unavailable = "";
        private final Making making;

        CountingProvider(Making making) {
            this.making = making;
        }

        @Override
        public String name() {
            return "counting";
        }

        @Override
        public Optional<String> unavailable() {
            return unavailable.isEmpty() ? Optional.empty() : Optional.of(unavailable);
        }

        @Override
        public Backend create(BackendContext context) throws BackendException {
            if (failures.getAndDecrement() > 0) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "not yet");
            }
            created.incrementAndGet();
            try {
                return making.make(context);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static final class CountingBackend implements Backend {
        final AtomicInteger closed = new AtomicInteger();

        @Override
        public Model load(ModelContext context) {
            throw new IllegalStateException("not reached");
        }

        @Override
        public void close() {
            closed.incrementAndGet();
        }
    }
}
