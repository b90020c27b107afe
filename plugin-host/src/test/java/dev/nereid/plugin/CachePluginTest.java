package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.nereid.plugin.jar.SpiVersion;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CachePluginTest {
    private static final String SERVICE = "META-INF/services/dev.nereid.spi.cache.CacheProvider";

    private static final String SOURCE = """
            package shop;

            import dev.nereid.spi.BackendException;
            import dev.nereid.spi.ErrorCode;
            import dev.nereid.spi.cache.*;
            import java.lang.foreign.MemorySegment;

            public final class Shop implements CacheProvider {
                public String name() {
                    return "shop";
                }

                public ResponseCache create(CacheContext context) {
                    String whenMissing = context.environment().getOrDefault("SHOP_OPEN", "");
                    if (!context.settings().getOrDefault("open", whenMissing).equals("yes")) {
                        throw new BackendException(ErrorCode.INVALID_ARGUMENT, "open: missing (expected: yes)");
                    }
                    return new ResponseCache() {
                        public void lookup(CacheKey key, LookupObserver observer) {
                            observer.failed(Thread.currentThread().getContextClassLoader().getName()
                                    + context.logger().getName());
                        }

                        public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
                            observer.refused();
                        }

                        public void close() {
                            throw new IllegalStateException("not today");
                        }
                    };
                }
            }
            """;

    @TempDir
    Path directory;

    @Test
    void makesTheCacheOfItsNameBehindABoundary() {
        PluginJar.of(SOURCE).entry(SERVICE, "shop.Shop").write(directory.resolve("shop/shop.jar"));
        List<String> reported = new ArrayList<>();

        try (ResponseCache cache = open("shop", Map.of("open", "yes"))) {
            cache.lookup(new CacheKey(1, 2), new LookupObserver() {
                @Override
                public void found(CacheEntry entry) {}

                @Override
                public void missing() {}

                @Override
                public void failed(String reason) {
                    reported.add(reason);
                }
            });
        }

        assertThat(reported).containsExactly("plugin shop" + "nereid.cache.shop");
    }

    @Test
    void reportsTheErrorOfThePlugin() {
        PluginJar.of(SOURCE).entry(SERVICE, "shop.Shop").write(directory.resolve("shop.jar"));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("shop", Map.of()))
                .withMessage("cache 'shop': open: missing (expected: yes)");
    }

    @Test
    void reportsAMissingOrBrokenPlugin() {
        PluginJar.of(SOURCE).write(directory.resolve("mute.jar"));
        PluginJar.of(SOURCE).entry(SERVICE, "shop.Shop").spiVersion("2.0").write(directory.resolve("young.jar"));
        PluginJar.of(SOURCE).entry(SERVICE, "shop.Shop").write(directory.resolve("alias.jar"));

        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("other", Map.of()))
                .withMessageContaining("cache 'other': unknown (expected: local, or the name of a plugin in one of");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("mute", Map.of()))
                .withMessageContaining("no provider: none of its jars has a file " + SERVICE);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("young", Map.of()))
                .withMessageContaining("Backend-Spi-Version: 2.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> open("alias", Map.of()))
                .withMessageContaining("0 providers of its name");
    }

    @Test
    void showsThePluginTheEnvironment() {
        PluginJar.of(SOURCE).entry(SERVICE, "shop.Shop").write(directory.resolve("shop.jar"));

        open("shop", Map.of(), Map.of("SHOP_OPEN", "yes")).close();
    }

    private ResponseCache open(String name, Map<String, String> settings) {
        return open(name, settings, Map.of());
    }

    private ResponseCache open(String name, Map<String, String> settings, Map<String, String> variables) {
        return CachePlugin.open(
                name,
                settings,
                variables,
                List.of(directory, directory.resolve("none")),
                new PluginEnvironment(new SpiVersion(1, 0), Map.of(), directory.resolve(".cache"), 1, Map.of()));
    }
}
