package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Parameters;
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Calls that cross the plugin boundary. */
final class PluginBoundaryTest {
    private final ClassLoader loader = new URLClassLoader("plugin", new URL[0], null);
    private final PluginBoundary boundary = new PluginBoundary("test", loader);
    private final List<String> invocations = new ArrayList<>();

    @Test
    void setsThePluginsContextClassLoaderForEveryInvocation() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Backend backend = new IsolatedBackend(new WatchingBackend(), boundary);

        backend.complete(context());
        Model model = backend.load(context());
        ModelInstance instance = model.newInstance(instanceContext());
        instance.execute(batch());
        assertThat(instance.checkReady()).isCompleted();
        instance.close();
        model.close();
        backend.close();

        assertThat(invocations)
                .containsExactly(
                        "complete", "load", "newInstance", "execute", "checkReady", "instance", "model", "backend");
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @Test
    void passesOnWhatAnExecutionThrows() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        IllegalStateException bug = new IllegalStateException("a bug");
        ModelInstance instance = new IsolatedModel.Instance(
                batch -> {
                    throw bug;
                },
                boundary);

        assertThatThrownBy(() -> instance.execute(batch())).isSameAs(bug);
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @Test
    void namesTheCureOfALibraryThatIsBoundToAnotherClassLoader() {
        UnsatisfiedLinkError bound =
                new UnsatisfiedLinkError("Native Library /x.so already loaded in another classloader");

        assertThatThrownBy(() -> boundary.invoke("load", () -> {
                    throw bound;
                }))
                .hasMessageContaining("add 'Nereid-Shared: NAME'");
        assertThatThrownBy(() -> boundary.invoke("load", () -> {
                    throw new BackendException(ErrorCode.UNAVAILABLE, "no tokenizer", bound);
                }))
                .hasMessageStartingWith("no tokenizer; ")
                .hasMessageContaining("add 'Nereid-Shared: NAME'")
                .extracting("code")
                .isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void theStartOfAnInstanceEndsWithTheStageOfThePlugin() {
        CompletableFuture<Void> stage = new CompletableFuture<>();
        CompletableFuture<Void> start = started(stage);
        assertThat(start).isNotDone();
        stage.complete(null);
        assertThat(start).isCompleted();

        BackendException failure = new BackendException(ErrorCode.NOT_FOUND, "no module é");
        assertThat(started(CompletableFuture.failedFuture(new CompletionException(failure)))
                        .exceptionNow())
                .isSameAs(failure);
        assertThat(started(CompletableFuture.failedFuture(new NoClassDefFoundError("Missing")))
                        .exceptionNow())
                .isInstanceOf(BackendException.class)
                .hasMessage("plugin 'test': ModelInstance.started failed: java.lang.NoClassDefFoundError: Missing");
    }

    /** A stage that a plugin keeps to itself goes on. */
    @Test
    void aCancelledStartEndsWithTheStageOfThePlugin() {
        CompletableFuture<Void> stage = new CompletableFuture<>();
        assertThat(started(stage).cancel(true)).isTrue();
        assertThat(stage).isCancelled();

        CompletableFuture<Void> hidden = new CompletableFuture<>();
        CompletableFuture<Void> start = started(hidden.minimalCompletionStage());
        assertThat(start.cancel(true)).isFalse();
        assertThat(start).isNotDone();
        hidden.complete(null);
        assertThat(start).isCompleted();
    }

    private CompletableFuture<Void> started(CompletionStage<Void> stage) {
        return new IsolatedModel.Instance(new StartingInstance(stage), boundary).started();
    }

    private record StartingInstance(CompletionStage<Void> started) implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            throw new IllegalStateException("not reached");
        }
    }

    @Test
    void treatsAFailedReadinessCheckAsNotReady() {
        ModelInstance instance = new IsolatedModel.Instance(
                new ModelInstance() {
                    @Override
                    public void execute(Batch batch) {
                        throw new IllegalStateException("not reached");
                    }

                    @Override
                    public CompletionStage<Void> checkReady() {
                        throw new IllegalStateException("a bug");
                    }

                    @Override
                    public void close() {
                        throw new LinkageError("a bug");
                    }
                },
                boundary);

        assertFails(instance, ErrorCode.INTERNAL, "plugin 'test': ModelInstance.checkReady failed: ");
        instance.close(); // logs, and does not throw
    }

    private ModelInstance checked(Supplier<CompletionStage<Void>> check) {
        return new IsolatedModel.Instance(
                new ModelInstance() {
                    @Override
                    public void execute(Batch batch) {}

                    @Override
                    public CompletionStage<Void> checkReady() {
                        return check.get();
                    }
                },
                boundary);
    }

    private static void assertFails(ModelInstance instance, ErrorCode code, String text) {
        assertThat(instance.checkReady())
                .isCompletedExceptionally()
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .havingCause()
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(code))
                .withMessageStartingWith(text);
    }

    @Test
    void passesOnWhyAReadinessCheckFailed() {
        BackendException reason = new BackendException(ErrorCode.NOT_FOUND, "no process");
        CompletableFuture<Void> later = new CompletableFuture<>();
        ModelInstance instance = checked(() -> later);
        CompletionStage<Void> check = instance.checkReady();
        assertThat(check.toCompletableFuture()).isNotDone();

        later.completeExceptionally(reason);

        assertThat(check).isCompletedExceptionally();
        assertFails(instance, ErrorCode.NOT_FOUND, "no process");
        assertFails(checked(() -> later.thenRun(() -> {})), ErrorCode.NOT_FOUND, "no process");
        assertFails(
                checked(() -> {
                    throw reason;
                }),
                ErrorCode.NOT_FOUND,
                "no process");
    }

    @Test
    void convertsOtherFailuresOfAReadinessCheck() {
        String where = "plugin 'test': ModelInstance.checkReady ";
        assertFails(
                checked(() -> CompletableFuture.failedStage(new IllegalStateException("a bug"))),
                ErrorCode.INTERNAL,
                where + "failed: java.lang.IllegalStateException: a bug");
        assertFails(checked(() -> null), ErrorCode.INTERNAL, where + "returned null");
    }

    @Test
    void keepsTheCodeOfABackendsOwnErrors() {
        assertThatThrownBy(() -> boundary.invoke("Backend.load", () -> {
                    throw new BackendException(ErrorCode.NOT_FOUND, "no file");
                }))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessage("no file");
    }

    @Test
    void letsErrorsOfTheVirtualMachinePass() {
        assertThatThrownBy(() -> boundary.invoke("Backend.load", () -> {
                    throw new OutOfMemoryError("no heap");
                }))
                .isInstanceOf(OutOfMemoryError.class);
    }

    @Test
    void describesCyclicCauses() {
        Exception inner = new Exception("inner");
        Exception outer = new Exception("outer", inner);
        inner.initCause(outer);

        assertThat(PluginBoundary.describe(outer))
                .startsWith("java.lang.Exception: outer; caused by java.lang.Exception: inner; caused by ");
    }

    private void recordInvocation(String what) {
        assertThat(Thread.currentThread().getContextClassLoader()).as(what).isSameAs(loader);
        invocations.add(what);
    }

    private static ModelContext context() {
        return new ModelContext() {
            @Override
            public ModelSettings settings() {
                return ModelSettings.builder("m", 1).build();
            }

            @Override
            public Parameters parameters() {
                return Parameters.of(Map.of());
            }

            @Override
            public Path modelDirectory() {
                return Path.of("m");
            }

            @Override
            public Path versionDirectory() {
                return Path.of("m", "1");
            }

            @Override
            public List<Device> instances() {
                return List.of(Device.CPU);
            }

            @Override
            public System.Logger logger() {
                return new PluginLogger("test", "m");
            }
        };
    }

    private static InstanceContext instanceContext() {
        return new InstanceContext() {
            @Override
            public String name() {
                return "m_0_0";
            }

            @Override
            public Device device() {
                return Device.CPU;
            }
        };
    }

    /** A batch that is never read. */
    private static Batch batch() {
        return (Batch) Proxy.newProxyInstance(
                Batch.class.getClassLoader(), new Class<?>[] {Batch.class}, (proxy, method, arguments) -> {
                    throw new IllegalStateException(method + ": not reached");
                });
    }

    private final class WatchingBackend implements Backend {
        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            recordInvocation("complete");
            return Optional.empty();
        }

        @Override
        public Model load(ModelContext context) {
            recordInvocation("load");
            return new WatchingModel();
        }

        @Override
        public void close() {
            recordInvocation("backend");
        }
    }

    private final class WatchingModel implements Model {
        @Override
        public ModelInstance newInstance(InstanceContext context) {
            recordInvocation("newInstance");
            return new WatchingInstance();
        }

        @Override
        public void close() {
            recordInvocation("model");
        }
    }

    private final class WatchingInstance implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            recordInvocation("execute");
        }

        @Override
        public CompletionStage<Void> checkReady() {
            recordInvocation("checkReady");
            return CompletableFuture.completedStage(null);
        }

        @Override
        public void close() {
            recordInvocation("instance");
        }
    }
}
