package dev.nereid.server.options;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.memory.GpuAccess;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.repository.storage.StorageLimits;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.server.host.HostPolicies;
import dev.nereid.server.host.HostSetting;
import dev.nereid.server.instance.GpuLoadLimits;
import dev.nereid.server.lifecycle.ModelLoadOptions.LoadObserver;
import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the options of embedding programs. */
final class ServerOptionsTest {
    @TempDir
    private Path directory;

    @Test
    void addsPluginsInTheOrderOfTheCalls() throws IOException {
        Path own = Files.createDirectory(directory.resolve("own"));
        Path bundled = Files.createDirectory(directory.resolve("bundled"));
        Path last = Files.createDirectory(directory.resolve("last"));

        ServerOptions options = ServerOptions.of(directory).withPlugins(own, bundled);

        assertThat(options.withPlugins(last).withPlugins(own).directories().plugins())
                .containsExactly(own, bundled, last);
        assertThat(options.withPlugins().directories().plugins()).containsExactly(own, bundled);
        assertThatThrownBy(() -> options.withPlugins(directory.resolve("none")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("none");
    }

    @Test
    void leavesSecretsOutOfTheEnvironment() {
        ServerOptions options = ServerOptions.of(directory)
                .with(o -> o.environment = Map.of(
                        "PATH", "/bin",
                        "AWS_SECRET_ACCESS_KEY", "s",
                        "AWS_REGION", "r",
                        "TRITONCACHE_REDIS_PASSWORD", "p"));

        assertThat(ServerOptions.of(directory).environment()).isEmpty();
        assertThat(options.withBackendSetting("b", "k", "v")
                        .with(o -> o.loadThreads = 2)
                        .environment())
                .isEqualTo(Map.of("PATH", "/bin", "AWS_REGION", "r"));
    }

    @Test
    void keepsEveryOptionThatIsNotChanged() throws IllegalAccessException {
        ServerOptions.Builder builder = new ServerOptions.Builder();
        builder.modelRepositories.add(directory);
        builder.plugins.add(directory);
        builder.pluginCache = Path.of("cache");
        builder.remote =
                new StorageOptions(List.of("s3://b"), List.of(), Map.of(), Path.of("copies"), StorageLimits.DEFAULT);
        builder.hasNamespaces = true;
        builder.autoComplete = false;
        builder.configName = "small";
        builder.loadThreads = 5;
        builder.modelLimits = new AdmissionLimits(1, 2);
        builder.warnings = (_, _) -> {};
        builder.observer = new LoadObserver() {
            @Override
            public <T> T observe(String model, String backend, Work work, Supplier<T> execution) {
                return execution.get();
            }
        };
        builder.processors = 77;
        builder.gpus = List.of(3);
        builder.parallelInstances = true;
        builder.hostPolicies = HostPolicies.of(List.of(new HostSetting("cpu", HostSetting.CPU_CORES, "0")));
        builder.gpuLimits = new GpuLoadLimits(Map.of(0, 0.5));
        builder.backendSetting("", "k", "v");
        builder.providers = List.of(fake(BackendProvider.class));
        builder.environment = Map.of("A", "b");
        builder.tensorMemoryBytes = OptionalLong.of(1);
        builder.idleBytes = OptionalLong.of(2);
        builder.returnAfter = Optional.of(Duration.ofDays(7));
        builder.poisonFreed = true;
        builder.clientSharedMemory = true;
        builder.gpuAccess = fake(GpuAccess.class);
        builder.limits = Optional.of(new AdmissionLimits(3, 4));
        builder.rateLimit = Optional.of(new RateLimitOptions(List.of()));
        builder.cache = Optional.of(CacheOptions.local(1));
        builder.delay = new DelayOptions(1, 2);
        builder.exitOnError = false;
        builder.strictReadiness = false;
        builder.exitTimeout = Duration.ofDays(1);
        builder.executionLimit = Duration.ofDays(2);
        builder.loadLimit = Duration.ofDays(3);
        builder.fatalErrors = _ -> {};
        builder.pluginThreads = 6;
        builder.outputCheckInterval = 7;
        builder.strictOutputs = true;
        builder.explicit("m");
        builder.pollInterval = Duration.ofDays(4);
        builder.stabilityWindow = Duration.ofDays(5);
        builder.loadRetries = 8;
        builder.memoryBudget = 9;
        builder.maxWait = Duration.ofDays(6);
        builder.maxWaiting = 10;
        builder.maxWaitingBytes = 11;
        builder.serverId = "mine";
        builder.clientErrorsAsBadRequest = true;
        for (Field option : ServerOptions.Builder.class.getFields()) {
            assertThat(option.get(builder)).as(option.getName()).isNotEqualTo(option.get(new ServerOptions.Builder()));
        }

        ServerOptions options = builder.build();

        assertThat(options.with(_ -> {})).isEqualTo(options);
    }

    private static <T> T fake(Class<T> type) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (_, method, arguments) -> switch (method.getName()) {
                    case "equals" -> Proxy.isProxyClass(arguments[0].getClass());
                    case "hashCode" -> 1;
                    default -> type.getSimpleName();
                }));
    }
}
