package dev.nereid.server.plugin;

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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
            Path classes = Files.createTempDirectory(file.getParent(), ".classes");
            compile(classes);
            try (OutputStream out = Files.newOutputStream(file);
                    JarOutputStream jar = new JarOutputStream(out, manifest())) {
                addClasses(jar, classes);
                if (!providers.isEmpty()) {
                    add(jar, "META-INF/services/" + BackendProvider.class.getName(), String.join("\n", providers));
                }
                for (Map.Entry<String, Path> entry : files.entrySet()) {
                    jar.putNextEntry(new JarEntry(entry.getKey()));
                    Files.copy(entry.getValue(), jar);
                    jar.closeEntry();
                }
                for (Map.Entry<String, String> entry : entries.entrySet()) {
                    add(jar, entry.getKey(), entry.getValue());
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

    private void compile(Path classes) throws IOException {
        if (sources.isEmpty()) {
            return;
        }
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
                            List.of(processing, "-cp", path, "-d", classes.toString()),
                            null,
                            units)
                    .call();
            assertThat(compiled).as(problems.toString()).isTrue();
        }
    }

    private void addClasses(JarOutputStream jar, Path classes) throws IOException {
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
                String name = classes.relativize(file).toString();
                if (!left.contains(name)) {
                    jar.putNextEntry(new JarEntry(name));
                    Files.copy(file, jar);
                    jar.closeEntry();
                }
            }
        }
    }

    private static void add(JarOutputStream jar, String name, String content) throws IOException {
        jar.putNextEntry(new JarEntry(name));
        jar.write(content.getBytes(StandardCharsets.UTF_8));
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
