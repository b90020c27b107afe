package dev.nereid.plugin;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.BackendProvider;
import java.io.IOException;
import java.io.OutputStream;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles Java sources into a jar, as a plugin's author would. Confined to the test's thread. */
public final class PluginJar {
    private static final Pattern PACKAGE = Pattern.compile("package ([\\w.]+);");
    private static final Pattern TYPE = Pattern.compile("(?:class|interface|record|enum) (\\w+)");
    /** Compiled once in a JVM: hundreds of tests write the same few plugins, and a compilation takes 100 ms. */
    private static final Map<Compilation, Map<String, byte[]>> COMPILED = new ConcurrentHashMap<>();

    private final Map<String, String> sources = new LinkedHashMap<>();
    private final Map<String, String> entries = new LinkedHashMap<>();
    private final Map<String, Path> files = new LinkedHashMap<>();
    private final List<String> providers = new ArrayList<>();
    private final List<Path> classPath = new ArrayList<>();
    private final List<String> left = new ArrayList<>();
    private String processing = "-proc:none";
    private final Map<String, String> attributes = new LinkedHashMap<>(Map.of("Backend-Spi-Version", "1.0"));

    public static PluginJar of(String... sources) {
        PluginJar jar = new PluginJar();
        for (String source : sources) {
            jar.sources.put(className(source), source);
        }
        return jar;
    }

    /** Names a class in the service file. */
    public PluginJar provider(String className) {
        providers.add(className);
        return this;
    }

    /** Sets the manifest's {@code Backend-Spi-Version}; an empty text leaves it out. */
    public PluginJar spiVersion(String version) {
        return attribute("Backend-Spi-Version", version);
    }

    /** Sets an attribute of the manifest; an empty text leaves it out. */
    public PluginJar attribute(String name, String value) {
        attributes.put(name, value);
        return this;
    }

    public PluginJar compiledAgainst(Path jar) {
        classPath.add(jar);
        return this;
    }

    /** Compiles with the annotation processors of the class path, which may name classes in the service file. */
    public PluginJar processed() {
        processing = "-proc:full";
        return this;
    }

    public PluginJar entry(String name, String content) {
        entries.put(name, content);
        return this;
    }

    /** Adds a file as it is. */
    public PluginJar file(String name, Path content) {
        files.put(name, content);
        return this;
    }

    /** Leaves a class out of the jar after it was compiled. */
    public PluginJar without(String className) {
        left.add(className.replace('.', '/') + ".class");
        return this;
    }

    public Path write(Path file) {
        try {
            Files.createDirectories(file.getParent());
            Map<String, byte[]> classes = classes();
            try (OutputStream out = Files.newOutputStream(file);
                    JarOutputStream jar = new JarOutputStream(out, manifest())) {
                for (Map.Entry<String, byte[]> entry : classes.entrySet()) {
                    if (!left.contains(entry.getKey())) {
                        add(jar, entry.getKey(), entry.getValue());
                    }
                }
                if (!providers.isEmpty()) {
                    add(
                            jar,
                            "META-INF/services/" + BackendProvider.class.getName(),
                            String.join("\n", providers).getBytes(StandardCharsets.UTF_8));
                }
                for (Map.Entry<String, Path> entry : files.entrySet()) {
                    jar.putNextEntry(new JarEntry(entry.getKey()));
                    Files.copy(entry.getValue(), jar);
                    jar.closeEntry();
                }
                for (Map.Entry<String, String> entry : entries.entrySet()) {
                    add(jar, entry.getKey(), entry.getValue().getBytes(StandardCharsets.UTF_8));
                }
            }
            return file;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Manifest manifest() {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.forEach((name, value) -> {
            if (!value.isEmpty()) {
                manifest.getMainAttributes().putValue(name, value);
            }
        });
        return manifest;
    }

    /** The compiled classes by their names in the jar, in the order of the names. */
    private Map<String, byte[]> classes() throws IOException {
        if (sources.isEmpty()) {
            return Map.of();
        }
        if (!classPath.isEmpty()) {
            return compile();
        }
        Compilation compilation = new Compilation(Map.copyOf(sources), processing);
        Map<String, byte[]> known = COMPILED.get(compilation);
        if (known == null) {
            known = compile();
            COMPILED.put(compilation, known);
        }
        return known;
    }

    private Map<String, byte[]> compile() throws IOException {
        Path directory = Files.createTempDirectory("plugin-classes");
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StringWriter problems = new StringWriter();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
            List<SourceText> units = sources.entrySet().stream()
                    .map(source -> new SourceText(source.getKey(), source.getValue()))
                    .toList();
            String path = Stream.concat(Stream.of(spiClasses()), classPath.stream())
                    .map(Path::toString)
                    .collect(Collectors.joining(":"));
            boolean compiled = compiler.getTask(
                            problems,
                            files,
                            null,
                            List.of(processing, "-cp", path, "-d", directory.toString()),
                            null,
                            units)
                    .call();
            assertThat(compiled).as(problems.toString()).isTrue();
            return readAndDelete(directory);
        }
    }

    private static Map<String, byte[]> readAndDelete(Path directory) throws IOException {
        Map<String, byte[]> classes = new TreeMap<>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                if (Files.isRegularFile(file)) {
                    classes.put(directory.relativize(file).toString(), Files.readAllBytes(file));
                }
                Files.delete(file);
            }
        }
        return classes;
    }

    private static void add(JarOutputStream jar, String name, byte[] content) throws IOException {
        jar.putNextEntry(new JarEntry(name));
        jar.write(content);
        jar.closeEntry();
    }

    private static Path spiClasses() {
        try {
            return Path.of(BackendProvider.class
                    .getProtectionDomain()
                    .getCodeSource()
                    .getLocation()
                    .toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String className(String source) {
        Matcher inPackage = PACKAGE.matcher(source);
        Matcher type = TYPE.matcher(source);
        assertThat(type.find()).as(source).isTrue();
        return (inPackage.find() ? inPackage.group(1) + "." : "") + type.group(1);
    }

    private record Compilation(Map<String, String> sources, String processing) {}

    private static final class SourceText extends SimpleJavaFileObject {
        private final String text;

        SourceText(String className, String text) {
            super(URI.create("string:///" + className.replace('.', '/') + ".java"), JavaFileObject.Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }
}
