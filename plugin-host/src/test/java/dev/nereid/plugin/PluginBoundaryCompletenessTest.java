package dev.nereid.plugin;

import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.nereid.plugin.boundary.IsolatedModelClient;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.AllocatedMemory;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.BatchingStrategy;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.DeviceInstanceContext;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.FormingBatch;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.PaddedModel;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.RequestView;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Tracing;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.CacheProvider;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import dev.nereid.spi.function.AsyncTensorFunction;
import dev.nereid.spi.function.FunctionProvider;
import dev.nereid.spi.function.StreamingFunction;
import dev.nereid.spi.function.TensorFunction;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StorageContext;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StorageProvider;
import dev.nereid.spi.storage.StoredObject;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Proxy;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Checks that every object of a plugin is called through a wrapper. The wrapper sets the plugin's context class loader.
 */
final class PluginBoundaryCompletenessTest {
    private static final Set<Class<?>> IMPLEMENTED_BY_PLUGINS = Set.of(
            BackendProvider.class,
            Backend.class,
            Model.class,
            PaddedModel.class,
            ModelInstance.class,
            BatchingStrategy.class,
            FormingBatch.class,
            Fence.class,
            ModelResponseObserver.class,
            CacheProvider.class,
            ResponseCache.class,
            CacheEntry.class,
            RepositoryAgentProvider.class,
            RepositoryAgent.class,
            StorageProvider.class,
            ModelStorage.class);

    /** Called by the SPI's own classes, which the server sees as a backend, a model and an instance. */
    private static final Set<Class<?>> CALLED_BY_THE_SPI =
            Set.of(FunctionProvider.class, AsyncTensorFunction.class, StreamingFunction.class, TensorFunction.class);

    private static final Set<Class<?>> IMPLEMENTED_BY_THE_SERVER = Set.of(
            AllocatedMemory.class,
            BackendContext.class,
            Batch.class,
            CancelHook.class,
            DeferredExecution.class,
            DeviceInstanceContext.class,
            InferenceRequest.class,
            InferenceResponse.class,
            InstanceContext.class,
            Metrics.class,
            Metrics.Counter.class,
            Metrics.Gauge.class,
            Metrics.Histogram.class,
            ModelClient.class,
            ModelContext.class,
            ModelRequest.class,
            ModelResponse.class,
            Parameters.class,
            RequestView.class,
            ResponseSender.class,
            SequenceState.class,
            Tracing.class,
            Tracing.Span.class,
            CacheContext.class,
            InsertObserver.class,
            LookupObserver.class,
            AgentContext.class,
            StorageContext.class);

    private static final Set<Class<?>> DATA = Set.of(Sequence.Id.class);

    /** Methods whose failures no caller could handle. */
    private static final Set<String> LOGGED = Set.of(
            "Backend#close",
            "Model#close",
            "ModelInstance#close",
            "BatchingStrategy#close",
            "Fence#isDone",
            "Fence#withEvent",
            "ResponseCache#close",
            "CacheEntry#close",
            "ModelStorage#close",
            "RepositoryAgent#loadComplete",
            "RepositoryAgent#loadFail",
            "RepositoryAgent#unload",
            "RepositoryAgent#unloadComplete",
            "RepositoryAgent#close");

    /** Methods that hand a plugin's object to the server, which wraps it. */
    private static final Set<String> CALLBACKS_WRAPPED =
            Set.of("LookupObserver#found", "ModelContext#keep", "ModelRequest#input", "ModelRequest#send");

    /** Methods with an action of the plugin: short and fit for any thread by contract, so not worth an object each. */
    private static final Set<String> CALLBACKS_LEFT_ALONE =
            Set.of("Batch#put", "InferenceResponse#put", "InferenceRequest#onCancel", "SequenceState#put");

    /** Methods with an action that an executor of the boundary runs. */
    private static final Set<String> CALLBACKS_OF_THE_EXECUTOR =
            Set.of("ResponseSender#onReady", "ModelContext#onLogLevel");

    /** Incubating: methods that this server does not have, so that nothing is handed over. */
    private static final Set<String> CALLBACKS_REFUSED =
            Set.of("Batch#fence", "InferenceResponse#fence", "SequenceState#fence");

    private final ClassLoader before = Thread.currentThread().getContextClassLoader();
    private final ClassLoader loader = new URLClassLoader("plugin", new URL[0], null);
    private final PluginBoundary boundary = new PluginBoundary("test", loader);
    private final List<Object> found = new ArrayList<>();

    @Test
    void everyInterfaceOfTheSpiIsClassified() {
        List<Class<?>> classified = Stream.of(
                        IMPLEMENTED_BY_PLUGINS, CALLED_BY_THE_SPI, IMPLEMENTED_BY_THE_SERVER, DATA)
                .<Class<?>>flatMap(Set::stream)
                .toList();

        Stream<Class<?>> all = Stream.of(
                        "dev.nereid.spi",
                        "dev.nereid.spi.agent",
                        "dev.nereid.spi.cache",
                        "dev.nereid.spi.function",
                        "dev.nereid.spi.storage")
                .flatMap(name -> classesBeside(Backend.class, name));

        assertThat(all.filter(
                        type -> type.isInterface() && !type.isAnnotation() && Modifier.isPublic(type.getModifiers())))
                .containsExactlyInAnyOrderElementsOf(classified);
    }

    static Stream<Class<?>> pluginInterfaces() {
        return IMPLEMENTED_BY_PLUGINS.stream();
    }

    @ParameterizedTest
    @MethodSource("pluginInterfaces")
    void everyPluginInterfaceHasOneWrapperThatDeclaresAllMethods(Class<?> type) {
        List<Class<?>> wrappers = Stream.of(PluginBoundary.class, Plugin.class)
                .flatMap(beside -> classesBeside(beside, beside.getPackageName()))
                .filter(type::isAssignableFrom)
                .toList();

        assertThat(wrappers).hasSize(1);
        Set<String> declared = signatures(wrappers.getFirst().getDeclaredMethods());
        // An inherited default method would return without the plugin.
        assertThat(methods(type)).allSatisfy(method -> assertThat(declared).contains(signature(method)));
    }

    static Stream<Method> pluginMethods() {
        return IMPLEMENTED_BY_PLUGINS.stream().flatMap(type -> methods(type).stream());
    }

    @ParameterizedTest
    @MethodSource("pluginMethods")
    void everyMethodRunsWithThePluginsLoader(Method method) throws Exception {
        FakePlugin plugin = new FakePlugin();
        Object wrapper = wrapper(method.getDeclaringClass(), plugin);

        invoke(wrapper, method);

        assertThat(plugin.invocations).extracting(Invocation::method).contains(signature(method));
        assertThat(plugin.invocations)
                .extracting(Invocation::contextClassLoader)
                .containsOnly(loader);
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @ParameterizedTest
    @MethodSource("pluginMethods")
    void everyMethodRestoresTheLoaderWhenThePluginThrows(Method method) {
        for (Throwable failure : List.of(
                new IllegalStateException("a bug"),
                new StackOverflowError(),
                new BackendException(ErrorCode.INTERNAL, "an error"))) {
            FakePlugin plugin = new FakePlugin();
            plugin.failing = signature(method);
            plugin.failure = failure;

            Throwable _ = catchThrowable(() -> invoke(wrapper(method.getDeclaringClass(), plugin), method));

            assertThat(plugin.invocations).extracting(Invocation::method).contains(signature(method));
            assertThat(plugin.invocations)
                    .extracting(Invocation::contextClassLoader)
                    .containsOnly(loader);
            assertThat(Thread.currentThread().getContextClassLoader())
                    .as("%s", failure)
                    .isSameAs(before);
        }
    }

    /** A failure that a method does not pass on is logged. */
    @ParameterizedTest
    @MethodSource("pluginMethods")
    void everyMethodPassesOnACodeAndItsText(Method method) {
        BackendException failure = new BackendException(ErrorCode.NOT_FOUND, "no such token 'é'");
        FakePlugin plugin = new FakePlugin();
        plugin.failing = signature(method);
        plugin.failure = failure;

        AtomicReference<Object> result = new AtomicReference<>();

        Throwable thrown =
                catchThrowable(() -> result.set(invoke(wrapper(method.getDeclaringClass(), plugin), method)));

        String name = method.getDeclaringClass().getSimpleName() + "#" + method.getName();
        if (thrown != null) {
            assertThat(thrown.getCause() == null ? thrown : thrown.getCause()).isSameAs(failure);
        } else if (name.equals("BackendProvider#unavailable")) {
            assertThat(result.get()).isEqualTo(Optional.of(failure.getMessage()));
        } else if (result.get() instanceof CompletionStage<?> stage) {
            assertThat(stage.toCompletableFuture().exceptionNow()).isSameAs(failure);
        } else {
            assertThat(LOGGED).contains(name);
        }
    }

    @Test
    void everyObjectThatAPluginHandsOutIsWrapped() throws Exception {
        Set<Class<?>> reached = new HashSet<>();

        reach(wrapper(BackendProvider.class, new FakePlugin()), reached);
        reach(wrapper(CacheProvider.class, new FakePlugin()), reached);
        reach(wrapper(Fence.class, new FakePlugin()), reached); // of an output
        reach(wrapper(ModelResponseObserver.class, new FakePlugin()), reached); // of a request to another model
        reach(wrapper(RepositoryAgentProvider.class, new FakePlugin()), reached);
        reach(wrapper(StorageProvider.class, new FakePlugin()), reached);

        assertThat(reached).isEqualTo(IMPLEMENTED_BY_PLUGINS);
    }

    @Test
    void everyCallbackOfAPluginIsKnown() {
        Set<String> callbacks = IMPLEMENTED_BY_THE_SERVER.stream()
                .flatMap(type -> Arrays.stream(type.getMethods()))
                .filter(method -> Arrays.stream(method.getParameterTypes())
                        .anyMatch(PluginBoundaryCompletenessTest::isImplementedByAPlugin))
                .map(method -> method.getDeclaringClass().getSimpleName() + "#" + method.getName())
                .collect(toSet());

        assertThat(callbacks)
                .containsExactlyInAnyOrderElementsOf(
                        Stream.of(CALLBACKS_WRAPPED, CALLBACKS_LEFT_ALONE, CALLBACKS_OF_THE_EXECUTOR, CALLBACKS_REFUSED)
                                .flatMap(Set::stream)
                                .toList());
    }

    @Test
    void theExecutorSetsThePluginsLoaderAndRestoresIt() {
        Executor executor = boundary.executor(Runnable::run);

        executor.execute(this::checkLoader);
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);

        Throwable _ = catchThrowable(() -> executor.execute(() -> {
            throw new IllegalStateException("a bug");
        }));
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    @Test
    void collectionsAreCopiedBehindTheBoundary() throws Exception {
        BackendProvider provider = new BackendProvider() {
            @Override
            public String name() {
                return "x";
            }

            @Override
            public Set<String> platforms() {
                return new HashSet<>(Set.of("y")) {
                    private static final long serialVersionUID = 1;

                    @Override
                    public Iterator<String> iterator() {
                        checkLoader();
                        return super.iterator();
                    }
                };
            }

            @Override
            public Backend create(BackendContext context) {
                throw new IllegalStateException("not reached");
            }
        };
        Model model = new Model() {
            @Override
            public ModelInstance newInstance(InstanceContext context) {
                throw new IllegalStateException("not reached");
            }

            @Override
            public List<MemoryUsage> memoryUsage() {
                return new AbstractList<>() {
                    @Override
                    public MemoryUsage get(int index) {
                        checkLoader();
                        return new MemoryUsage(MemoryPlace.HOST, 1);
                    }

                    @Override
                    public int size() {
                        checkLoader();
                        return 1;
                    }
                };
            }
        };

        assertThat(List.copyOf(IsolatedBackend.Provider.of(provider, boundary).platforms()))
                .containsExactly("y");
        assertThat(List.copyOf(new IsolatedModel(model, boundary).memoryUsage()))
                .hasSize(1);
    }

    @Test
    void aLookupThatFindsNoEntryFails() {
        List<String> reasons = new ArrayList<>();
        LookupObserver observer = new LookupObserver() {
            @Override
            public void found(CacheEntry entry) {
                throw new IllegalStateException("not reached");
            }

            @Override
            public void missing() {
                throw new IllegalStateException("not reached");
            }

            @Override
            public void failed(String reason) {
                reasons.add(reason);
            }
        };
        ResponseCache cache = (ResponseCache) Proxy.newProxyInstance(
                ResponseCache.class.getClassLoader(),
                new Class<?>[] {ResponseCache.class},
                (proxy, method, arguments) -> LookupObserver.class
                        .getMethod("found", CacheEntry.class)
                        .invoke(arguments[1], (Object) null));

        new IsolatedCache(cache, boundary, () -> {}).lookup(new CacheKey(1, 2), observer);

        assertThat(reasons).containsExactly("found: null (expected: an entry)");
    }

    /** Calls all methods of a wrapper and of the objects that they return. */
    private void reach(Object wrapper, Set<Class<?>> reached) throws Exception {
        assertThat(Proxy.isProxyClass(wrapper.getClass())).as("%s", wrapper).isFalse();
        List<Class<?>> types = IMPLEMENTED_BY_PLUGINS.stream()
                .filter(candidate -> candidate.isInstance(wrapper))
                .toList();
        assertThat(types).isNotEmpty();
        if (!reached.addAll(types)) {
            return;
        }
        List<Object> handedOut = new ArrayList<>();
        for (Method method :
                types.stream().flatMap(type -> methods(type).stream()).toList()) {
            Object result = invoke(wrapper, method);
            if (result instanceof Optional<?> optional) {
                optional.ifPresent(handedOut::add);
            } else if (result != null) {
                handedOut.add(result);
            }
        }
        handedOut.addAll(found);
        found.clear();
        for (Object object : handedOut) {
            if (IMPLEMENTED_BY_PLUGINS.stream().anyMatch(candidate -> candidate.isInstance(object))) {
                reach(object, reached);
            }
        }
    }

    private Object wrapper(Class<?> type, FakePlugin plugin) throws Exception {
        return switch (plugin.as(type)) {
            case BackendProvider provider -> IsolatedBackend.Provider.of(provider, boundary);
            case Backend backend -> new IsolatedBackend(backend, boundary);
            case Model model -> new IsolatedModel(model, boundary);
            case ModelInstance instance -> new IsolatedModel.Instance(instance, boundary);
            case BatchingStrategy strategy -> new IsolatedModel.Strategy(strategy, boundary);
            case FormingBatch batch -> new IsolatedModel.Strategy(() -> batch, boundary).begin();
            case Fence fence -> new IsolatedCallbacks(Runnable::run, boundary).isolate(fence);
            case ModelResponseObserver observer -> new IsolatedModelClient.IsolatedResponseObserver(observer, boundary);
            case CacheProvider provider -> new IsolatedCache.Provider(provider, boundary, () -> {});
            case ResponseCache cache -> new IsolatedCache(cache, boundary, () -> {});
            case CacheEntry entry -> new IsolatedCache.Entry(entry, boundary);
            case RepositoryAgentProvider provider -> IsolatedAgent.Provider.of(provider, boundary);
            case RepositoryAgent agent -> new IsolatedAgent(agent, boundary);
            case StorageProvider provider -> new IsolatedStorage.Provider(provider, boundary, () -> {});
            case ModelStorage storage -> new IsolatedStorage(storage, boundary, () -> {});
            default -> throw new AssertionError("no wrapper of " + type);
        };
    }

    private @Nullable Object invoke(Object wrapper, Method method) throws Exception {
        Object[] arguments =
                Arrays.stream(method.getParameterTypes()).map(this::argument).toArray();
        try {
            return method.invoke(wrapper, arguments);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    private Object argument(Class<?> type) {
        if (type == CacheKey.class) {
            return new CacheKey(1, 2);
        }
        if (type == BackendException.class) {
            return new BackendException(ErrorCode.INTERNAL, "an error");
        }
        if (type == Duration.class) {
            return Duration.ZERO;
        }
        if (type == MemorySegment.class) {
            return Arena.ofAuto().allocate(64);
        }
        if (type == Sequence.Id.class) {
            return new Sequence.Id.Numeric(1);
        }
        if (type == SequenceEnd.class) {
            return SequenceEnd.IDLE;
        }
        if (type == Path.class) {
            return Path.of("x");
        }
        if (type == String.class) {
            return "x";
        }
        if (type == StoredObject.class) {
            return new StoredObject("x", 0, "y", Instant.EPOCH);
        }
        if (type == OutputStream.class) {
            return OutputStream.nullOutputStream();
        }
        return proxy(type, (proxy, method, arguments) -> {
            if (method.getName().equals("found")) {
                found.add(arguments[0]);
            }
            return null;
        });
    }

    /** Whatever thread completes the request: each action on its stage, and each call of its observer. */
    @Test
    void responsesOfOtherModelsComeThroughTheBoundary() {
        List<ModelResponseObserver> observers = new ArrayList<>();
        CompletableFuture<ModelResponse> response = new CompletableFuture<>();
        CompletableFuture<Void> loaded = new CompletableFuture<>();
        ModelRequest request = (ModelRequest) proxy(ModelRequest.class, (proxy, method, arguments) -> {
            if (method.getName().equals("send") && arguments != null) {
                observers.add((ModelResponseObserver) arguments[0]);
                return null;
            }
            return method.getName().equals("send") ? response : proxy;
        });
        ModelClient client = new IsolatedCallbacks(Runnable::run, boundary).isolate((ModelClient)
                proxy(ModelClient.class, (_, method, _) -> method.getName().equals("request") ? request : loaded));
        List<String> seen = new ArrayList<>();
        CompletionStage<Void> sent = client.request("m")
                .id("1")
                .priority(2)
                .send()
                .thenAccept(_ -> checkLoader())
                .thenRun(() -> seen.add("response"));
        client.request("m").send((ModelResponseObserver) proxy(ModelResponseObserver.class, (_, method, _) -> {
            checkLoader();
            seen.add(method.getName());
            return null;
        }));
        CompletionStage<Void> load = client.load("m").thenRun(this::checkLoader);
        CompletionStage<Void> unload = client.unload("m").thenRun(this::checkLoader);

        response.complete((ModelResponse) proxy(ModelResponse.class, (_, _, _) -> null));
        observers.getFirst().onCompleted();
        loaded.complete(null);

        assertThat(sent.toCompletableFuture()).isCompleted();
        assertThat(load.toCompletableFuture()).isCompleted();
        assertThat(unload.toCompletableFuture()).isCompleted();
        assertThat(seen).containsExactly("response", "onCompleted");
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(before);
    }

    /** A plugin that cancels the stage leaves nothing open. */
    @Test
    void closesTheResponseThatAPluginWaitsForNoMore() {
        CompletableFuture<ModelResponse> response = new CompletableFuture<>();
        List<String> calls = new ArrayList<>();
        CompletionStage<ModelResponse> isolated = boundary.stage(response, ModelResponse::close);
        isolated.toCompletableFuture().cancel(false);

        response.complete((ModelResponse) proxy(ModelResponse.class, (_, method, _) -> calls.add(method.getName())));

        assertThat(calls).containsExactly("close");
    }

    /** Such as a class that a plugin lacks; exceptions pass as they are, and are logged by the caller. */
    @Test
    void errorsOfObserversBecomeExceptions() {
        FakePlugin plugin = new FakePlugin();
        plugin.failing = "onCompleted[]";
        plugin.failure = new NoClassDefFoundError("lacking");
        ModelResponseObserver observer = new IsolatedModelClient.IsolatedResponseObserver(
                (ModelResponseObserver) plugin.as(ModelResponseObserver.class), boundary);

        assertThat(catchThrowable(observer::onCompleted))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("plugin 'test': ModelResponseObserver.onCompleted failed:"
                        + " java.lang.NoClassDefFoundError: lacking");
    }

    private void checkLoader() {
        assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(loader);
    }

    private static Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
    }

    /** Returns whether a parameter takes an object that a plugin implements, be it a lambda. */
    private static boolean isImplementedByAPlugin(Class<?> type) {
        boolean functional = type.isInterface()
                && Arrays.stream(type.getMethods())
                                .filter(method -> Modifier.isAbstract(method.getModifiers()))
                                .count()
                        == 1;
        return IMPLEMENTED_BY_PLUGINS.contains(type)
                || (functional && !IMPLEMENTED_BY_THE_SERVER.contains(type) && !DATA.contains(type));
    }

    private static List<Method> methods(Class<?> type) {
        return Arrays.stream(type.getMethods())
                .filter(method -> !Modifier.isStatic(method.getModifiers()))
                .toList();
    }

    private static Set<String> signatures(Method... methods) {
        return Arrays.stream(methods)
                .map(PluginBoundaryCompletenessTest::signature)
                .collect(toSet());
    }

    private static String signature(Method method) {
        return method.getName() + Arrays.toString(method.getParameterTypes());
    }

    /** Lists the classes of a package that lie beside a class. */
    private static Stream<Class<?>> classesBeside(Class<?> beside, String packageName) {
        try {
            Path place = Path.of(
                    beside.getProtectionDomain().getCodeSource().getLocation().toURI());
            if (Files.isDirectory(place)) {
                return classesIn(place, packageName).stream();
            }
            try (FileSystem jar = FileSystems.newFileSystem(place)) {
                return classesIn(jar.getPath("/"), packageName).stream();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (URISyntaxException e) {
            throw new AssertionError(e);
        }
    }

    private static List<Class<?>> classesIn(Path root, String packageName) throws IOException {
        List<Class<?>> classes = new ArrayList<>();
        try (Stream<Path> files = Files.list(root.resolve(packageName.replace('.', '/')))) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (name.endsWith(".class") && !name.equals("package-info.class")) {
                    classes.add(Class.forName(
                            packageName + "." + name.substring(0, name.length() - ".class".length()),
                            false,
                            PluginBoundaryCompletenessTest.class.getClassLoader()));
                }
            }
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
        return classes;
    }

    /** An invocation of a plugin's method. Immutable. */
    private record Invocation(String method, ClassLoader contextClassLoader) {}

    /** A plugin whose objects record each invocation. Confined to the test's thread. */
    private static final class FakePlugin implements InvocationHandler {
        final List<Invocation> invocations = new ArrayList<>();
        String failing = "";
        Throwable failure = new IllegalStateException("not reached");

        Object as(Class<?> type) {
            return proxy(type, this);
        }

        @Override
        public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments) throws Throwable {
            if (method.getDeclaringClass() == Object.class) {
                return method.invoke(this, arguments);
            }
            invocations.add(
                    new Invocation(signature(method), Thread.currentThread().getContextClassLoader()));
            if (signature(method).equals(failing)) {
                throw failure;
            }
            if (arguments != null && arguments.length > 1 && arguments[1] instanceof LookupObserver observer) {
                observer.found((CacheEntry) as(CacheEntry.class));
            }
            return sample(method);
        }

        private @Nullable Object sample(Method method) {
            Class<?> type = method.getReturnType();
            if (IMPLEMENTED_BY_PLUGINS.contains(type)) {
                return as(type);
            }
            if (type == Optional.class) {
                return content(method).filter(IMPLEMENTED_BY_PLUGINS::contains).map(this::as);
            }
            if (content(method).filter(IMPLEMENTED_BY_PLUGINS::contains).isPresent()) {
                throw new AssertionError(
                        method + ": a collection of plugin objects (expected: each wrapped, and a sample)");
            }
            return switch (type.getSimpleName()) {
                case "void" -> null;
                case "boolean" -> true;
                case "long" -> 1L;
                case "String" -> "x";
                case "Path" -> Path.of("x");
                case "CompletionStage" -> CompletableFuture.completedStage(null);
                case "Set" -> Set.of();
                case "List" -> List.of();
                case "Map" -> Map.of();
                case "BackendTraits" -> BackendTraits.DEFAULT;
                case "StoragePage" -> StoragePage.last(List.of());
                case "MemorySegment" -> Arena.ofAuto().allocate(64);
                default -> throw new AssertionError(method + ": no sample of its result");
            };
        }

        /** Finds the element type of an optional value or a collection. */
        private static Optional<Class<?>> content(Method method) {
            return method.getGenericReturnType() instanceof ParameterizedType generic
                            && generic.getActualTypeArguments()[0] instanceof Class<?> content
                    ? Optional.of(content)
                    : Optional.empty();
        }
    }
}
