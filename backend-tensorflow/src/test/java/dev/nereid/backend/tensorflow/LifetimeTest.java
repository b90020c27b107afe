package dev.nereid.backend.tensorflow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeBackendContext;
import dev.nereid.testkit.FakeBatch;
import dev.nereid.testkit.FakeInstanceContext;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.io.File;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Memory over many requests, every order of closing, and class loaders that go. */
@Tag("slow")
@Timeout(300)
class LifetimeTest {
    private static final Shape FOUR = Shape.of(4);
    private static final int REQUESTS = 10_000;
    /** In a leak every round grows; the JVM's own threads allocate in some. */
    private static final int ROUNDS = 4;

    private static final int RELOADS = 40;
    private static final int RACES = 15;
    private static final int MAX_RUNS_BEFORE = 50;
    private static final long MAX_GROWTH_KIB = 2 << 10;

    @TempDir
    private Path directory;

    private static ModelSettingsBuilder sum() {
        return ModelSettings.builder("m", 1)
                .modelFilename(TestModels.SAVED_MODEL)
                .maxBatchSize(8)
                .input(TensorSpec.of("x", DataType.FP32, FOUR))
                .output(TensorSpec.of("sum", DataType.FP32, FOUR));
    }

    /** A leak of one tensor of 64 KiB for each request would be 640 MB. */
    @Test
    void memoryDoesNotGrowOverTenThousandRequests() throws IOException {
        new GraphFiles()
                .placeholder("x", org.tensorflow.proto.DataType.DT_FLOAT, -1)
                .placeholder("text", org.tensorflow.proto.DataType.DT_STRING, -1)
                .operation("same", "Identity", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .operation("negative", "Neg", org.tensorflow.proto.DataType.DT_FLOAT, "x")
                .operation("words", "Identity", org.tensorflow.proto.DataType.DT_STRING, "text")
                .write(directory.resolve("model.graphdef"));
        ModelSettings settings = ModelSettings.builder("m", 1)
                .modelFilename("model.graphdef")
                .input(TensorSpec.of("x", DataType.FP32, Shape.of(-1)))
                .input(TensorSpec.of("text", DataType.BYTES, Shape.of(-1)))
                .output(TensorSpec.of("same", DataType.FP32, Shape.of(-1)))
                .output(TensorSpec.of("negative", DataType.FP32, Shape.of(-1)))
                .output(TensorSpec.of("words", DataType.BYTES, Shape.of(-1)))
                .build();
        try (TestBackend test = new TestBackend(directory)) {
            Model model = test.backend.load(test.context(settings, 1));
            ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_0"));
            Tensor x = test.floats(Shape.of(16_384), new float[16_384]);
            Tensor shifted = test.tensor(DataType.FP32, Shape.of(16_384), new byte[65_536], 4);
            Tensor text = Tensor.ofStrings(Shape.of(2), List.of("short", "a longer text ".repeat(500)));
            long least = leastGrowthKib(() -> run(test, instance, settings, text, x, shifted, REQUESTS));

            assertThat(least).isLessThan(MAX_GROWTH_KIB);
            instance.close();
            model.close();
        }
    }

    private static void run(
            TestBackend test,
            ModelInstance instance,
            ModelSettings settings,
            Tensor text,
            Tensor x,
            Tensor y,
            int times) {
        for (int i = 0; i < times; i++) {
            FakeRequest request = new FakeRequest(1, List.of("same", "negative", "words"))
                    .with("x", i % 2 == 0 ? x : y)
                    .with("text", text);
            try (FakeBatch batch = new FakeBatch(settings, test.memory, request)) {
                instance.execute(batch);
            }
        }
    }

    /** Loads and unloads models; what a session keeps would add up. */
    @Test
    void memoryDoesNotGrowOverReloads() throws IOException {
        TestModels.variable(directory);
        try (TestBackend test = new TestBackend(directory)) {
            long least = leastGrowthKib(() -> reload(test, RELOADS));

            assertThat(least).isLessThan(MAX_GROWTH_KIB);
        }
    }

    private static void reload(TestBackend test, int times) {
        for (int i = 0; i < times; i++) {
            Model model = test.backend.load(test.context(sum().build(), 1));
            ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_0"));
            test.run(instance, sum().build(), 1, Map.of("x", test.floats(Shape.of(1, 4), 1, 1, 1, 1)));
            instance.close();
            model.close();
        }
    }

    /** An action that is repeated. */
    private interface Work {
        void run();
    }

    private static long leastGrowthKib(Work work) throws IOException {
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = residentKib();
            work.run();
            least = Math.min(least, residentKib() - before);
        }
        return least;
    }

    private static long residentKib() throws IOException {
        Matcher rss = Pattern.compile("VmRSS:\\s+(\\d+) kB").matcher(Files.readString(Path.of("/proc/self/status")));
        assertThat(rss.find()).isTrue();
        return Long.parseLong(rss.group(1));
    }

    /** Runs, releases of outputs, and the closing of all parts, in every order; each instance has run before. */
    @Test
    void survivesEveryOrderOfRunsReleasesAndClosing() throws Exception {
        TestModels.variable(directory);
        TensorFlowJava.ensureLoaded();
        Random random = new Random(20_261);
        for (int round = 0; round < RACES; round++) {
            try (LeakCheckingMemory memory = new LeakCheckingMemory();
                    Arena arena = Arena.ofShared();
                    ExecutorService threads = Executors.newCachedThreadPool()) {
                race(memory, arena, threads, random);
            }
        }
    }

    private void race(LeakCheckingMemory memory, Arena arena, ExecutorService threads, Random random) throws Exception {
        Backend backend = new TensorFlowBackendProvider()
                .create(new FakeBackendContext(Map.of(), TensorFlowJava.CACHE, TestBackend.PROCESSORS));
        Model model = backend.load(new FakeModelContext(
                sum().build(), directory, directory, List.of(Device.CPU, Device.CPU), new RecordedLog()));
        List<AutoCloseable> closing = new ArrayList<>(List.of(backend, model));
        List<CountDownLatch> begun = new ArrayList<>();
        List<Future<List<FakeBatch>>> runs = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_" + i));
            closing.add(instance);
            CountDownLatch run = new CountDownLatch(1 + random.nextInt(MAX_RUNS_BEFORE));
            begun.add(run);
            runs.add(threads.submit(() -> runUntilClosed(instance, memory, arena, run)));
        }
        Collections.shuffle(closing, random);
        for (CountDownLatch run : begun) {
            assertThat(run.await(1, TimeUnit.MINUTES)).isTrue();
        }
        for (AutoCloseable one : closing) {
            one.close();
        }
        for (Future<List<FakeBatch>> run : runs) {
            assertThat(run.get()).isNotEmpty();
            for (FakeBatch batch : run.get()) { // outputs that the server still reads after all else is gone
                assertThat(TestBackend.floats(batch.outputs().get("sum"))).containsExactly(2, 3, 4, 5);
                batch.close();
            }
        }
    }

    private static List<FakeBatch> runUntilClosed(
            ModelInstance instance, LeakCheckingMemory memory, Arena arena, CountDownLatch run) {
        List<FakeBatch> unread = new ArrayList<>();
        Tensor x = Tensor.of(
                DataType.FP32,
                Shape.of(1, 4),
                arena.allocate(16, 64).copyFrom(MemorySegment.ofArray(new float[] {1, 1, 1, 1})));
        while (true) {
            FakeBatch batch = new FakeBatch(sum().build(), memory, new FakeRequest(1, List.of("sum")).with("x", x));
            try {
                instance.execute(batch);
            } catch (IllegalStateException e) {
                assertThat(e).hasMessage("execution: closed (expected: idle)");
                batch.close();
                return unread;
            }
            run.countDown();
            if (unread.size() < 200) {
                unread.add(batch);
            } else {
                batch.close();
            }
        }
    }

    /** A plugin in a class loader of its own, as the server has it, that uses the library which is loaded already. */
    @Test
    void theClassLoaderOfAClosedPluginIsCollected() throws Exception {
        TestModels.variable(directory);
        TensorFlowJava.ensureLoaded();

        WeakReference<ClassLoader> loader = servePlugin();

        for (int i = 0; i < 50 && loader.get() != null; i++) {
            System.gc();
            Thread.onSpinWait();
        }
        assertThat(loader.get()).isNull();
    }

    private WeakReference<ClassLoader> servePlugin() throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        try (PluginLoader loader = new PluginLoader(urls.toArray(URL[]::new));
                TestBackendOf plugin = new TestBackendOf(loader, directory)) {
            assertThat(plugin.backend.getClass().getClassLoader()).isSameAs(loader);
            plugin.serve(sum().build());
            return new WeakReference<>(loader);
        }
    }

    /** Loads the plugin and its libraries itself, and all else as the test does. */
    private static final class PluginLoader extends URLClassLoader {
        PluginLoader(URL[] urls) {
            super("plugin", urls, LifetimeTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            boolean isOwn = name.startsWith("dev.nereid.backend.")
                    || name.startsWith("org.tensorflow.")
                    || name.startsWith("com.google.protobuf.");
            if (!isOwn) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            return loaded != null ? loaded : findClass(name);
        }
    }

    /** A backend of another class loader. */
    private static final class TestBackendOf implements AutoCloseable {
        private final Path directory;
        private final Backend backend;

        TestBackendOf(ClassLoader loader, Path directory) throws Exception {
            this.directory = directory;
            BackendProvider provider = (BackendProvider) loader.loadClass(TensorFlowBackendProvider.class.getName())
                    .getConstructor()
                    .newInstance();
            backend = provider.create(new FakeBackendContext(Map.of(), TensorFlowJava.CACHE, TestBackend.PROCESSORS));
        }

        void serve(ModelSettings settings) {
            FakeModelContext context =
                    new FakeModelContext(settings, directory, directory, List.of(Device.CPU), new RecordedLog());
            try (LeakCheckingMemory memory = new LeakCheckingMemory();
                    Arena arena = Arena.ofShared();
                    Model model = backend.load(context);
                    ModelInstance instance = model.newInstance(new FakeInstanceContext("m_0_0"))) {
                Tensor x = Tensor.of(DataType.FP32, Shape.of(1, 4), arena.allocate(16, 64));
                FakeRequest request = new FakeRequest(1, List.of("sum")).with("x", x);
                try (FakeBatch batch = new FakeBatch(settings, memory, request)) {
                    instance.execute(batch);
                    assertThat(TestBackend.floats(batch.outputs().get("sum"))).containsExactly(1, 2, 3, 4);
                }
            }
        }

        @Override
        public void close() {
            backend.close();
        }
    }
}
