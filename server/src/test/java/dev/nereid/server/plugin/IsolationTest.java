package dev.nereid.server.plugin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

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
import java.lang.reflect.Proxy;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** What the border to a plugin does to calls that cross it. */
final class IsolationTest {
    private final ClassLoader loader = new URLClassLoader("plugin", new URL[0], null);
    private final PluginBoundary boundary = new PluginBoundary("test", loader);
    private final List<String> calls = new ArrayList<>();

    @Test
    void makesEveryCallWithThePluginsContextClassLoader() throws BackendException {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Backend backend = new IsolatedBackend(new WatchingBackend(), boundary);

        backend.complete(context());
        Model model = backend.load(context());
        ModelInstance instance = model.newInstance(place());
        instance.execute(batch());
        assertThat(instance.isReady()).isTrue();
        instance.close();
        model.close();
        backend.close();

        assertThat(calls)
                .containsExactly(
                        "complete", "load", "newInstance", "execute", "isReady", "instance", "model", "backend");
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @Test
    void passesOnWhatAnExecutionThrows() throws BackendException {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        IllegalStateException bug = new IllegalStateException("a bug");
        ModelInstance instance = new IsolatedInstance(
                batch -> {
                    throw bug;
                },
                boundary);

        assertThatThrownBy(() -> instance.execute(batch())).isSameAs(bug);
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @Test
    void countsAnInstanceAsUnreadyThatFailsToSay() {
        ModelInstance instance = new IsolatedInstance(
                new ModelInstance() {
                    @Override
                    public void execute(Batch batch) {
                        throw new IllegalStateException("not reached");
                    }

                    @Override
                    public boolean isReady() {
                        throw new IllegalStateException("a bug");
                    }

                    @Override
                    public void close() {
                        throw new LinkageError("a bug");
                    }
                },
                boundary);

        assertThat(instance.isReady()).isFalse();
        instance.close(); // logs, and does not throw
    }

    @Test
    void keepsTheCodeOfABackendsOwnErrors() {
        assertThatThrownBy(() -> boundary.call("Backend.load", () -> {
                    throw new BackendException(ErrorCode.NOT_FOUND, "no file");
                }))
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessage("no file");
    }

    @Test
    void letsErrorsOfTheVirtualMachinePass() {
        assertThatThrownBy(() -> boundary.call("Backend.load", () -> {
                    throw new OutOfMemoryError("no heap");
                }))
                .isInstanceOf(OutOfMemoryError.class);
    }

    @Test
    void describesCausesEvenIfTheyGoRoundInCircles() {
        Exception inner = new Exception("inner");
        Exception outer = new Exception("outer", inner);
        inner.initCause(outer);

        assertThat(PluginBoundary.describe(outer))
                .startsWith("java.lang.Exception: outer; caused by java.lang.Exception: inner; caused by ");
    }

    private void called(String what) {
        assertThat(Thread.currentThread().getContextClassLoader()).as(what).isSameAs(loader);
        calls.add(what);
    }

    private static ModelContext context() {
        return new ModelContext() {
            @Override
            public ModelSettings settings() {
                return ModelSettings.builder("m", 1).build();
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

    private static InstanceContext place() {
        return new InstanceContext() {
            @Override
            public String name() {
                return "m_0_0";
            }

            @Override
            public Device device() {
                return Device.CPU;
            }

            @Override
            public List<String> profiles() {
                return List.of();
            }
        };
    }

    /** A batch that nobody looks into. */
    private static Batch batch() {
        return (Batch) Proxy.newProxyInstance(
                Batch.class.getClassLoader(), new Class<?>[] {Batch.class}, (proxy, method, arguments) -> {
                    throw new IllegalStateException(method + ": not reached");
                });
    }

    private final class WatchingBackend implements Backend {
        @Override
        public Optional<ModelCompletion> complete(ModelContext context) {
            called("complete");
            return Optional.empty();
        }

        @Override
        public Model load(ModelContext context) {
            called("load");
            return new WatchingModel();
        }

        @Override
        public void close() {
            called("backend");
        }
    }

    private final class WatchingModel implements Model {
        @Override
        public ModelInstance newInstance(InstanceContext context) {
            called("newInstance");
            return new WatchingInstance();
        }

        @Override
        public void close() {
            called("model");
        }
    }

    private final class WatchingInstance implements ModelInstance {
        @Override
        public void execute(Batch batch) {
            called("execute");
        }

        @Override
        public boolean isReady() {
            called("isReady");
            return true;
        }

        @Override
        public void close() {
            called("instance");
        }
    }
}
