package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.plugin.jar.PluginClassLoader;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.plugin.jar.SpiVersion;
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
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class BackendSlotTest {
    private final AtomicInteger closed = new AtomicInteger();

    @TempDir
    private Path root;

    @Test
    void createsOneBackendForConcurrentCallers() throws Exception {
        CountDownLatch making = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(3);
        CountingProvider provider = new CountingProvider(context -> {
            making.await();
            return new CountingBackend(closed);
        });
        BackendSlot slot = slot(provider);
        Set<Backend> got = new HashSet<>();
        Queue<BackendLease> leases = new ConcurrentLinkedQueue<>();

        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<Backend>> futures = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                futures.add(threads.submit(() -> {
                    asked.countDown();
                    BackendLease lease = slot.acquire();
                    leases.add(lease);
                    return lease.backend();
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
        assertThat(leases).hasSize(4);
    }

    @Test
    void triesAgainAfterAFailure() {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend(closed));
        provider.failures.set(1);
        BackendSlot slot = slot(provider);

        assertThatThrownBy(slot::acquire)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                .hasMessage("not yet");
        assertThat(slot.acquire().backend()).isSameAs(slot.acquire().backend());
        assertThat(provider.created).hasValue(1);
    }

    @Test
    void convertsAnyThrowableOfAPluginToAnInternalError() {
        BackendSlot slot = slot(new CountingProvider(context -> {
            throw new NoClassDefFoundError("com/example/Driver");
        }));

        assertThatThrownBy(slot::acquire)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                .hasMessage("plugin 'test': BackendProvider.create failed:"
                        + " java.lang.NoClassDefFoundError: com/example/Driver");
    }

    @Test
    void closesABackendWhoseTraitsFail() {
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

        assertThatThrownBy(slot::acquire).hasMessageContaining("no traits");
        assertThat(closed).hasValue(1);
    }

    @Test
    void doesNotMakeABackendThatIsUnavailable() {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend(closed));
        provider.unavailable = "no driver";
        BackendSlot slot = slot(provider);

        assertThatThrownBy(slot::acquire).hasMessage("backend 'counting' is not available: no driver");
        assertThat(slot.status())
                .isEqualTo(new BackendStatus("counting", "test", BackendStatus.State.UNAVAILABLE, "no driver"));
        assertThat(provider.created).hasValue(0);
    }

    @Test
    void closesTheBackendWithItsLastLeaseAndCreatesItAnew() {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend(closed));
        BackendSlot slot = slot(provider);

        BackendLease first = slot.acquire();
        BackendLease second = slot.acquire();
        first.close();
        first.close();
        assertThat(closed).hasValue(0);
        second.close();
        assertThat(closed).hasValue(1);
        assertThatThrownBy(second::backend).isInstanceOf(IllegalStateException.class);

        slot.acquire().close();
        assertThat(provider.created).hasValue(2);
        assertThat(closed).hasValue(2);
    }

    @Test
    void closesALeasedBackendAfterTheEnd() {
        BackendSlot slot = slot(new CountingProvider(context -> new CountingBackend(closed)));
        BackendLease lease = slot.acquire();

        slot.end();
        assertThat(closed).hasValue(0);
        assertThatThrownBy(slot::acquire).hasMessage("backend 'counting' is closed, since the server stops");
        lease.close();
        assertThat(closed).hasValue(1);
    }

    @Test
    void keepsTheBackendOfANativePluginUntilTheEnd() {
        CountingProvider provider = new CountingProvider(context -> new CountingBackend(closed));
        BackendSlot slot = slot(provider, true);

        slot.acquire().close();
        slot.acquire().close();
        assertThat(provider.created).hasValue(1);
        assertThat(closed).hasValue(0);
        slot.end();
        slot.end();
        assertThat(closed).hasValue(1);
    }

    @Test
    void givesSettingsCacheAndProcessorsToTheBackend() throws Exception {
        List<BackendContext> seen = new ArrayList<>();
        CountingProvider provider = new CountingProvider(context -> {
            seen.add(context);
            return new CountingBackend(closed);
        });
        BackendSlot slot = slot(provider);
        BackendLease lease = slot.acquire();
        BackendContext context = seen.getFirst();

        assertThat(context.settings().asMap())
                .isEqualTo(Map.of("shared", "all", "both", "own", "default-max-batch-size", "4"));
        assertThat(context.settings().label("both")).isEqualTo("--backend-config=counting,both");
        assertThat(context.processors()).isEqualTo(3);
        assertThat(context.pluginDirectory()).isEqualTo(root.resolve("test"));
        assertThat(context.logger().getName()).isEqualTo("nereid.backend.counting");
        Path cache = context.cacheDirectory();
        assertThat(cache).isDirectory().hasParent(root.resolve("cache")).isEqualTo(context.cacheDirectory());
        assertThat(cache).hasFileName("test-0123");
        assertThat(lease.digest()).isEqualTo("0123");
    }

    /** The hint about a file system that executes nothing is for those alone; the test of the image has one. */
    @Test
    void keepsTheReasonOfABackendWhoseCacheDirectoryMayExecute() {
        BackendSlot slot = slot(new CountingProvider(context -> {
            assertThat(context.cacheDirectory()).isEmptyDirectory();
            throw new IllegalArgumentException("cannot open");
        }));

        assertThatThrownBy(slot::acquire).hasMessageEndingWith("cannot open");
        assertThat(root.resolve("cache/test-0123")).isEmptyDirectory();
    }

    private BackendSlot slot(BackendProvider provider) {
        return slot(provider, false);
    }

    private BackendSlot slot(BackendProvider provider, boolean isNative) {
        PluginSource source = new PluginSource("test", root.resolve("test"), List.of());
        PluginEnvironment environment = new PluginEnvironment(
                new SpiVersion(1, 0),
                Map.of("", Map.of("shared", "all", "both", "all"), "counting", Map.of("both", "own")),
                root.resolve("cache"),
                3,
                Map.of());
        PluginSlot plugin = new PluginSlot(source, "0123", "", isNative, new CountedResource.Lifecycle<>() {
            @Override
            public Plugin open() {
                try {
                    PluginBoundary boundary =
                            new PluginBoundary("test", getClass().getClassLoader());
                    return new Plugin(
                            source,
                            new PluginClassLoader(source, getClass().getClassLoader()),
                            List.of(IsolatedBackend.Provider.of(provider, boundary)),
                            List.of());
                } catch (PluginException e) {
                    throw new AssertionError(e);
                }
            }

            @Override
            public void close(Plugin plugin) {
                plugin.close();
            }
        });
        return new BackendSlot("counting", plugin, environment, Runnable::run);
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
        public Backend create(BackendContext context) {
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

    private record CountingBackend(AtomicInteger closed) implements Backend {
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
