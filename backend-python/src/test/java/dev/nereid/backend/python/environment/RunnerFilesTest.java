package dev.nereid.backend.python.environment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.testkit.FakeBackendContext;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunnerFilesTest {
    @TempDir
    Path directory;

    @Test
    void unpacksTheSourcesReadOnly() throws IOException {
        Path runner = RunnerFiles.unpack(context());

        assertThat(runner).isAbsolute().hasParent(directory.resolve("cache"));
        assertThat(contents(runner))
                .isEqualTo(contents(Path.of("target/classes/python")))
                .containsKeys(
                        "nereid_python/__main__.py", "triton_python_backend_utils.py", "c_python_backend_utils.py");
        assertThat(PosixFilePermissions.toString(
                        Files.getPosixFilePermissions(runner.resolve("nereid_python/__main__.py"))))
                .isEqualTo("r--r--r--");
        assertThat(RunnerFiles.unpack(context())).isEqualTo(runner);
    }

    @Test
    void replacesDamagedFilesAndLeavesOthersAlone() throws IOException {
        Path runner = RunnerFiles.unpack(context());
        Path main = runner.resolve("nereid_python/__main__.py");
        Path runtime = runner.resolve("nereid_python/runtime.py");
        Path intact = runner.resolve("nereid_python/codec.py");
        byte[] before = Files.readAllBytes(main);
        FileTime old = FileTime.fromMillis(1_000_000);
        Files.setLastModifiedTime(intact, old);
        Files.delete(main);
        Files.writeString(main, "damaged");
        Files.delete(runtime);

        RunnerFiles.unpack(context());

        assertThat(main).hasBinaryContent(before);
        assertThat(runtime).exists();
        assertThat(Files.getLastModifiedTime(intact)).isEqualTo(old);
    }

    @Test
    void severalServersUnpackAtOnce() throws Exception {
        try (ExecutorService executor = Executors.newFixedThreadPool(4)) {
            List<Callable<Map<String, String>>> tasks = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                tasks.add(() -> contents(RunnerFiles.unpack(context())));
            }
            Map<String, String> expected = contents(Path.of("target/classes/python"));
            for (Future<Map<String, String>> result : executor.invokeAll(tasks)) {
                result.get().keySet().removeIf(name -> name.endsWith(".part"));
                assertThat(result.get()).isEqualTo(expected);
            }
        }
    }

    @Test
    void readsTheFilesOfAJar() throws Exception {
        Path jar = directory.resolve("plugin.jar");
        try (OutputStream out = Files.newOutputStream(jar);
                JarOutputStream entries = new JarOutputStream(out);
                Stream<Path> all = Files.walk(Path.of("target/classes"))) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                entries.putNextEntry(
                        new ZipEntry(Path.of("target/classes").relativize(file).toString()));
                Files.copy(file, entries);
            }
        }
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {jar.toUri().toURL()}, getClass().getClassLoader()) {
                    @Override
                    public URL getResource(String name) {
                        return findResource(name);
                    }

                    @Override
                    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                        synchronized (getClassLoadingLock(name)) {
                            if (name.startsWith("dev.nereid.backend.")) {
                                Class<?> loaded = findLoadedClass(name);
                                return loaded == null ? findClass(name) : loaded;
                            }
                            return super.loadClass(name, resolve);
                        }
                    }
                }) {
            Class<?> inJar = loader.loadClass(RunnerFiles.class.getName());
            assertThat(inJar).isNotEqualTo(RunnerFiles.class);

            Path runner = (Path) inJar.getMethod("unpack", dev.nereid.spi.BackendContext.class)
                    .invoke(null, context());

            assertThat(contents(runner)).isEqualTo(contents(Path.of("target/classes/python")));
            assertThat(RunnerFiles.unpack(context())).isEqualTo(runner);
        } catch (InvocationTargetException e) {
            throw new AssertionError(e.getCause());
        }
    }

    @Test
    void saysWhereItCannotWrite() throws IOException {
        FakeBackendContext context = context();
        Path file = Files.writeString(directory.resolve("file"), "");
        FakeBackendContext broken =
                new FakeBackendContext(context.name(), context.settings(), file, file, 1, context.logger(), Map.of());

        assertThatThrownBy(() -> RunnerFiles.unpack(broken))
                .isInstanceOf(BackendException.class)
                .hasMessageContaining(file.toString())
                .hasMessageContaining("--plugin-cache-directory");
    }

    private FakeBackendContext context() {
        return Contexts.backend(directory, Map.of(), Map.of());
    }

    private static Map<String, String> contents(Path root) throws IOException {
        Map<String, String> contents = new TreeMap<>();
        try (Stream<Path> all = Files.walk(root)) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                if (!file.toString().endsWith(".pyc")) {
                    contents.put(root.relativize(file).toString(), Files.readString(file));
                }
            }
        } catch (java.io.UncheckedIOException | java.nio.file.NoSuchFileException e) {
            return contents(root); // a part of another server was moved meanwhile
        }
        return contents;
    }
}
